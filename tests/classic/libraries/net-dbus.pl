#!/usr/bin/perl
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The contract of libraries.py with Net::DBus.
use strict;
use warnings;

use constant FACE => 'org.example.Library';
use constant PATH => '/org/example/library';
use constant PROPERTIES => 'org.freedesktop.DBus.Properties';
use constant FAILED => 'org.example.Error.Failed';

package Service;

use Net::DBus::Exporter 'org.example.Library';
use parent 'Net::DBus::Object';
use Net::DBus qw(:typing);

use constant NESTED => ['dict', 'string', ['array', ['struct', 'int32', ['variant']]]];

dbus_method('Nest', [NESTED], [NESTED]);
dbus_method('Fail', [], []);
dbus_method('Emit', ['uint32'], []);
dbus_method('Quit', [], []);
dbus_signal('Tick', ['uint32']);
dbus_property('Level', 'uint32');

sub new {
	my ($class, $service, $loop) = @_;
	my $self = $class->SUPER::new($service, main::PATH);
	$self->{level} = 1;
	$self->{loop} = $loop;
	return $self;
}

# A variant comes as a plain value, and goes as what it looks like: say what it is.
sub Nest {
	my ($self, $value) = @_;
	for my $list (values %$value) {
		for my $pair (@$list) {
			my $inner = $pair->[1];
			$pair->[1] = ref $inner
				? dbus_array([map { dbus_int32($_) } @$inner])
				: dbus_string($inner);
		}
	}
	return $value;
}

sub Fail {
	die Net::DBus::Error->new(name => main::FAILED, message => 'as you wish');
}

sub Emit {
	my ($self, $value) = @_;
	$self->emit_signal('Tick', $value);
}

sub Quit {
	my ($self) = @_;
	$self->{loop}->shutdown;
}

sub Level {
	my ($self, $value) = @_;
	if (defined $value) {
		$self->{level} = $value;
		$self->emit_signal_in('PropertiesChanged', main::PROPERTIES, undef, main::FACE,
			{ Level => dbus_variant(dbus_uint32($value)) }, []);
	}
	return dbus_uint32($self->{level});
}

package main;

use Net::DBus qw(:typing);
use Net::DBus::Reactor;

$| = 1;

sub serve {
	my ($name) = @_;
	my $bus = Net::DBus->session;
	my $loop = Net::DBus::Reactor->main;
	my $service = $bus->export_service($name);
	my $object = Service->new($service, $loop);
	print "ready\n";
	$loop->run;
	$bus->get_bus_object->ReleaseName($name);
}

my ($bus, $name, $remote, $face);

sub same {
	my ($what, @expected) = @_;
	die "$what->[0], not $expected[0]" if "@$what" ne "@expected";
}

sub fails {
	my ($call) = @_;
	eval { $call->(); 1 } and die 'success';
	return $@;
}

# What the signal that follows from $act carries.
sub signalled {
	my ($from, $signal, $act) = @_;
	my $loop = Net::DBus::Reactor->main;
	my $seen;
	my $id = $from->connect_to_signal($signal, sub { $seen = [@_]; $loop->shutdown; });
	$act->();
	$loop->run until $seen;
	$from->disconnect_from_signal($signal, $id);
	return $seen;
}

my %checks = (
	nested => sub {
		my $value = {
			one => [[-1, dbus_string('text')],
				[2, dbus_array([dbus_int32(3), dbus_int32(4)])]],
			none => [],
		};
		my $back = $face->Nest($value);
		same([sort keys %$back], 'none', 'one');
		same([scalar @{$back->{none}}], 0);
		same([map { $_->[0] } @{$back->{one}}], -1, 2);
		same([$back->{one}[0][1], @{$back->{one}[1][1]}], 'text', 3, 4);
	},
	error => sub {
		my $error = fails(sub { $face->Fail });
		same([$error->name, $error->message], FAILED, 'as you wish');
	},
	unknown => sub {
		my $error = fails(sub { $face->Nothing });
		die $error unless $error->name =~ /[.]UnknownMethod$/;
	},
	property => sub {
		same([$face->Level], 1);
		$face->Level(dbus_uint32(77));
		same([$face->Level], 77);
		my $all = $remote->as_interface(PROPERTIES)->GetAll(FACE);
		same([%$all], 'Level', 77);
	},
	changed => sub {
		my $seen = signalled($remote->as_interface(PROPERTIES), 'PropertiesChanged',
			sub { $face->Level(dbus_uint32(77)) });
		same([$seen->[0], %{$seen->[1]}], FACE, 'Level', 77);
	},
	signal => sub {
		same(signalled($face, 'Tick', sub { $face->Emit(4711) }), 4711);
	},
	introspection => sub {
		my $xml = $remote->as_interface('org.freedesktop.DBus.Introspectable')->Introspect;
		die $xml unless $xml =~ /Nest/ && $xml =~ /a\{sa\(iv\)\}/;
	},
	taken => sub {
		same([$bus->get_bus_object->RequestName($name, 4)], 3);
	},
	gone => sub {
		my $loop = Net::DBus::Reactor->main;
		my $seen;
		$bus->get_bus_object->connect_to_signal('NameOwnerChanged', sub {
			return unless $_[0] eq $name;
			$seen = [@_];
			$loop->shutdown;
		});
		$face->Quit;
		$loop->run until $seen;
		die "@$seen" unless $seen->[1] && !$seen->[2];
	},
);

sub ask {
	($name, my @wanted) = @_;
	$bus = Net::DBus->session;
	$remote = $bus->get_service($name)->get_object(PATH);
	$face = $remote->as_interface(FACE);
	for my $check (@wanted) {
		$checks{$check}->();
		print "ok $check\n";
	}
}

my ($role, @arguments) = @ARGV;
$role eq 'serve' ? serve(@arguments) : ask(@arguments);
