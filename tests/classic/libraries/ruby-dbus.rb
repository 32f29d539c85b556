#!/usr/bin/ruby
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The contract of libraries.py with ruby-dbus.
require 'dbus'

$stdout.sync = true
FACE = 'org.example.Library'
PATH = '/org/example/library'
PROPERTIES = 'org.freedesktop.DBus.Properties'
FAILED = 'org.example.Error.Failed'

# What the client asks.
class Service < DBus::Object
  attr_writer :loop

  def initialize(path)
    super
    @level = 1
  end

  dbus_interface FACE do
    # A variant comes as a plain value; of what type it was, the library does not say.
    dbus_method(:Nest, 'in value:a{sa(iv)}, out back:a{sa(iv)}') do |value|
      typed = ->(list) { list.map { |number, inner| [number, Service.typed(inner)] } }
      [value.transform_values(&typed)]
    end
    dbus_method(:Fail, '') { raise DBus.error(FAILED), 'as you wish' }
    dbus_signal(:Tick, 'value:u')
    dbus_method(:Emit, 'in value:u') { |value| Tick(value) }
    dbus_method(:Quit, '') { @loop.quit }
  end

  def self.typed(value)
    [value.is_a?(Array) ? 'ai' : 's', value]
  end

  # Properties of a service are left to it.
  dbus_interface PROPERTIES do
    dbus_method(:Get, 'in face:s, in name:s, out value:v') { |_, _| [['u', @level]] }
    dbus_method(:GetAll, 'in face:s, out all:a{sv}') { |_| [{ 'Level' => ['u', @level] }] }
    dbus_method(:Set, 'in face:s, in name:s, in value:v') do |face, name, value|
      @level = value
      PropertiesChanged(face, { name => ['u', value] }, [])
    end
    dbus_signal(:PropertiesChanged, 'face:s, changed:a{sv}, invalidated:as')
  end
end

def serve(name)
  bus = DBus::SessionBus.instance
  service = bus.request_service(name)
  object = Service.new(PATH)
  service.export(object)
  object.loop = DBus::Main.new
  object.instance_variable_get(:@loop) << bus
  puts 'ready'
  object.instance_variable_get(:@loop).run
  bus.proxy.ReleaseName(name)
end

# Each check of the contract.
class Client
  def initialize(name)
    @bus = DBus::SessionBus.instance
    @name = name
    @remote = @bus.service(name).object(PATH)
    @face = @remote[FACE]
  end

  def same(got, expected)
    raise "#{got.inspect}, not #{expected.inspect}" unless got == expected
  end

  def fails
    yield
    raise 'success'
  rescue DBus::Error => e
    e
  end

  # What the signal carries that follows from the block.
  def signalled(face, signal)
    seen = nil
    loop = DBus::Main.new
    loop << @bus
    face.on_signal(@bus, signal) do |*arguments|
      seen = arguments
      loop.quit
    end
    yield
    loop.run until seen
    seen
  end

  def nested
    back = @face.Nest({ 'one' => [[-1, %w[s text]], [2, ['ai', [3, 4]]]], 'none' => [] })
    same(back[0], { 'one' => [[-1, 'text'], [2, [3, 4]]], 'none' => [] })
  end

  def error
    error = fails { @face.Fail }
    same(error.name, FAILED)
    raise error.message unless error.message.start_with?('as you wish')
  end

  def unknown
    message = DBus::Message.new(DBus::Message::METHOD_CALL)
    message.path = PATH
    message.interface = FACE
    message.destination = @name
    message.member = 'Nothing'
    error = fails { @bus.send_sync(message) { |reply| raise reply if reply.is_a?(DBus::Error) } }
    raise error.name unless error.name.end_with?('.UnknownMethod')
  end

  def property
    same(@face['Level'], 1)
    @face['Level'] = ['u', 77]
    same(@face['Level'], 77)
    same(@face.all_properties, { 'Level' => 77 })
  end

  def changed
    seen = signalled(@remote[PROPERTIES], 'PropertiesChanged') { @face['Level'] = ['u', 77] }
    same(seen[0..1], [FACE, { 'Level' => 77 }])
  end

  def signal
    same(signalled(@face, 'Tick') { @face.Emit(4711) }, [4711])
  end

  def introspection
    nest = @face.methods['Nest'] || @face.methods[:Nest]
    same(nest.params.map(&:type), ['a{sa(iv)}'])
    same(nest.rets.map(&:type), ['a{sa(iv)}'])
  end

  def taken
    same(@bus.proxy.RequestName(@name, 4), [3])
  end

  def gone
    rule = DBus::MatchRule.new.from_s(
      "type='signal',interface='org.freedesktop.DBus',member='NameOwnerChanged'"
    )
    seen = nil
    loop = DBus::Main.new
    loop << @bus
    @bus.add_match(rule) do |message|
      if message.params[0] == @name
        seen = message.params
        loop.quit
      end
    end
    @face.Quit
    loop.run until seen
    raise seen.inspect unless seen[1] != '' && seen[2] == ''
  end
end

def ask(name, *checks)
  client = Client.new(name)
  checks.each do |check|
    client.public_send(check)
    puts "ok #{check}"
  end
end

send(*ARGV)
