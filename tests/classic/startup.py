#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The command line and the configuration of a bus daemon: dbus-daemon(1).

usage: startup.py DAEMON
"""
import os
import signal
import struct
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'repo'))
from place import DAEMON, DENY, OPEN, Place, REFERENCE, ROOT, gone, may_own, until  # noqa: E402
from rawbus import DRIVER, ERROR, ERROR_NAME, MEMBER, PATIENCE, Peer  # noqa: E402
from rawbus import Refused, RETURN, SENDER, text  # noqa: E402
from tap import Plan  # noqa: E402


# ---- the command line ----

def words_of_their_own():
    """Values as words of their own, in any order."""
    with Place() as place:
        addresses, write_address = os.pipe()
        pids, write_pid = os.pipe()
        process = subprocess.Popen(
            [DAEMON, '--nofork', '--print-pid', str(write_pid), '--print-address',
             str(write_address), '--config-file', place.path('bus.conf'), '--address',
             f'unix:path={place.socket}2', '--nopidfile', '--nosyslog'],
            pass_fds=[write_address, write_pid], stderr=subprocess.DEVNULL)
        os.close(write_address)
        os.close(write_pid)
        place.pids.append(process.pid)
        # To its end: whoever waits for the end of what is printed must get it.
        with open(addresses, encoding='utf-8') as file:
            address = file.read()
        with open(pids, encoding='utf-8') as file:
            pid = file.read()
        if pid != f'{process.pid}\n':
            yield f'pid {pid}, not {process.pid}'
        if not address.startswith(f'unix:path={place.socket}2,guid='):
            yield f'address {address}'
        Peer(place.socket + '2').hello()


def wrong_options():
    with Place() as place:
        for options in (['--bogus'], ['word'], ['--print-address=x'], ['--session'],
                        ['--address=unix:path=/x', '--address=unix:path=/y']):
            result = place.run(*options)
            if not result.returncode or not result.stderr or result.stdout:
                yield f'{options}: {result}'
    result = subprocess.run([DAEMON, '--nofork', '--print-pid'], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, timeout=PATIENCE)
    if not result.returncode or not result.stderr:
        yield f'no configuration: {result}'


def information():
    for option, expected in (('--version', '1.14' if REFERENCE else 'kdbusd'),
                             ('--introspect', '<interface name="org.freedesktop.DBus">')):
        result = subprocess.run([DAEMON, option], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True, timeout=PATIENCE)
        if result.returncode or expected not in result.stdout:
            yield f'{option}: {result}'


def configuration_from_a_descriptor():
    """GLib's test bus removes the file as soon as it has the address."""
    with Place() as place, open(place.path('bus.conf'), encoding='utf-8') as file:
        os.unlink(place.path('bus.conf'))
        process = subprocess.Popen(
            [DAEMON, '--nofork', f'--config-file=/proc/self/fd/{file.fileno()}',
             '--print-address'], pass_fds=[file.fileno()], stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True)
        place.pids.append(process.pid)
        if not process.stdout.readline().startswith('unix:path='):
            yield 'no address'
        place.peer()
        process.stdout.close()


def by_a_symbolic_link():
    """In the place of dbus-daemon, under its name."""
    with Place() as place:
        os.symlink(DAEMON, place.path('dbus-daemon'))
        process = subprocess.Popen(
            [place.path('dbus-daemon'), '--session', '--nofork', '--print-address',
             f'--address=unix:path={place.socket}'], stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True)
        place.pids.append(process.pid)
        address = process.stdout.readline()
        if not address.startswith('unix:path=') or ';' in address:
            yield f'address {address}'
        place.peer()
        process.stdout.close()


# ---- the process ----

def background():
    """The address is there, and the bus serves, when the command has returned."""
    with Place() as place:
        place.config(f'<fork/><pidfile>{place.path("pid")}</pidfile>' + OPEN)
        result = place.run('--print-address=1', '--print-pid=1')
        address, pid = result.stdout.split()
        place.pids.append(int(pid))
        if result.returncode or not address.startswith('unix:path='):
            yield f'{result}'
        place.peer()
        with open(place.path('pid'), encoding='utf-8') as file:
            if file.read() != pid + '\n':
                yield 'another pid in the pid file'
        if os.getsid(int(pid)) == os.getsid(0) or os.readlink(f'/proc/{pid}/cwd') != '/':
            yield 'it has not left its session and directory'
        second = place.run('--print-address')
        if not second.returncode or 'pid file' not in second.stderr:
            yield f'a second one: {second}'
        os.kill(int(pid), signal.SIGTERM)
        if not gone(int(pid)):
            yield 'it does not end'
        if os.path.exists(place.path('pid')):
            yield 'the pid file is left'


def background_that_fails():
    with Place() as place:
        place.config('<fork/>' + OPEN, listen=f'unix:path={place.path("no/such/dir")}')
        result = place.run('--print-address=1', '--print-pid=1')
        if not result.returncode or result.stdout or not result.stderr:
            yield f'{result}'


def options_overrule_the_configuration():
    with Place() as place:
        place.config(f'<fork/><pidfile>{place.path("pid")}</pidfile>' + OPEN)
        process = place.start('--nopidfile')
        if not process.address or process.poll() is not None:
            yield 'it went to the background'
        if os.path.exists(place.path('pid')):
            yield 'there is a pid file'
        process.terminate()
        process.communicate(timeout=PATIENCE)
    with Place() as place:
        result = place.run('--fork', '--print-pid')
        place.pids.append(int(result.stdout))
        place.peer()


def status_of(pid):
    with open(f'/proc/{pid}/status', encoding='utf-8') as file:
        return dict(line.split(':', 1) for line in file)


def another_user():
    """Sockets and pid file are made as root; then nothing of it is left."""
    with Place() as place:
        place.config('<user>nobody</user><fork/>'
                     f'<pidfile>{place.path("pid")}</pidfile>' + OPEN)
        result = place.run('--print-pid')
        pid = int(result.stdout)
        place.pids.append(pid)
        # dbus-daemon changes it last of all.
        until(lambda: '65534' in status_of(pid)['Uid'])
        status = status_of(pid)
        if set(status['Uid'].split()) != {'65534'} or set(status['Gid'].split()) != {'65534'}:
            yield f'{status["Uid"]} {status["Gid"]}'
        if status['Groups'].strip() or int(status['CapEff'], 16) & ~(1 << 29):
            yield f'groups {status["Groups"]} capabilities {status["CapEff"]}'
        place.peer(uid=1)


def user_that_is_not_there():
    with Place() as place:
        place.config('<user>nosuchuser</user>' + OPEN)
        result = place.run('--nofork')
        if not result.returncode or 'nosuchuser' not in result.stderr:
            yield f'{result}'


def nothing_to_authenticate_with():
    with Place() as place:
        place.config('<auth>DBUS_COOKIE_SHA1</auth>' + OPEN)
        result = place.run('--nofork')
        if not result.returncode or 'nobody could authenticate' not in result.stderr:
            yield f'{result}'


def transports_that_are_not_there():
    with Place() as place:
        for address in 'tcp:host=localhost', 'nonce-tcp:host=localhost', 'launchd:env=X':
            place.config(OPEN, listen=address)
            result = place.run('--nofork')
            if not result.returncode or 'only unix: and systemd: are supported' not in result.stderr:
                yield f'{address}: {result}'


def private_domains():
    """Two at once do not meet, and leave nothing behind."""
    with Place() as one, Place() as two:
        runtime = one.path('runtime')
        os.mkdir(runtime, 0o700)
        environment = {**os.environ, 'XDG_RUNTIME_DIR': runtime, 'TMPDIR': runtime}
        processes = [subprocess.Popen(
            [DAEMON, '--nofork', f'--config-file={place.path("bus.conf")}', '--print-address'],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            for place in (one, two)]
        for process in processes:
            if not process.stdout.readline().startswith('unix:path='):
                yield 'no address, or more than one'
        one.peer()
        two.peer()
        for process in processes:
            process.terminate()
            process.communicate(timeout=PATIENCE)
        left = [name for name in os.listdir(runtime) if not name.startswith('dbus-1')]
        if left:
            yield f'left behind: {left}'


# ---- reading again ----

def policy_is_read_again(how):
    with Place() as place:
        process = place.start()
        peer, caller = place.peer(), place.peer()
        if not may_own(peer, 'a.b'):
            yield 'denied at first'
        place.config(DENY)
        if how == 'signal':
            process.send_signal(signal.SIGHUP)
        else:
            reply = caller.driver('ReloadConfig')
            if reply.kind != RETURN:
                yield f'ReloadConfig: {reply.string()}'
        if how != 'signal' and may_own(peer, 'a.b'):
            yield 'ReloadConfig was answered before it was done'
        if not until(lambda: not may_own(peer, 'a.b')):
            yield 'what is denied now is not denied'
        process.terminate()
        process.communicate(timeout=PATIENCE)


def broken_files_change_nothing():
    with Place(DENY) as place:
        process = place.start()
        peer = place.peer()
        place.config(OPEN + '\n<bogus/>')
        reply = peer.driver('ReloadConfig')
        if reply.kind != ERROR or reply.fields[ERROR_NAME] != DRIVER + '.Error.Failed':
            yield f'ReloadConfig: {reply.fields}'
        if 'bogus' not in reply.string():
            yield f'not the reason: {reply.string()}'
        if may_own(peer, 'a.b') or not may_own(peer, 'a.c'):
            yield 'the rules have changed'
        place.config(OPEN)
        peer.driver('ReloadConfig')
        if not may_own(peer, 'a.b'):
            yield 'it does not recover'
        process.terminate()
        errors = process.communicate(timeout=PATIENCE)[1]
        if 'bogus' not in errors:
            yield f'not logged: {errors}'


def directories_are_watched():
    with Place() as place:
        os.mkdir(place.path('bus.d'))
        place.config(OPEN + '<includedir>bus.d</includedir>')
        process = place.start()
        peer = place.peer()
        place.write('bus.d/deny.conf', '<busconfig><policy context="mandatory">'
                                       '<deny own="a.b"/></policy></busconfig>')
        if not until(lambda: not may_own(peer, 'a.b')):
            yield 'a new file is not seen'
        os.unlink(place.path('bus.d/deny.conf'))
        if not until(lambda: may_own(peer, 'a.b')):
            yield 'that it has gone is not seen'
        process.terminate()
        process.communicate(timeout=PATIENCE)


def symbolic_links_and_new_directories_are_watched():
    with Place() as place:
        place.config(OPEN + f'<includedir>{place.path("later/bus.d")}</includedir>')
        process = place.start()
        peer = place.peer()
        place.write('elsewhere.conf', '<busconfig><policy context="mandatory">'
                                      '<deny own="a.b"/></policy></busconfig>')
        os.mkdir(place.path('later'))
        os.mkdir(place.path('later/bus.d'))
        os.symlink(place.path('elsewhere.conf'), place.path('later/bus.d/deny.conf'))
        if not until(lambda: not may_own(peer, 'a.b')):
            yield 'a link in a new directory is not seen'
        process.terminate()
        process.communicate(timeout=PATIENCE)


def new_services_are_announced():
    with Place() as place:
        os.mkdir(place.path('services'))
        place.config(OPEN + '<servicedir>services</servicedir>')
        process = place.start()
        peer = place.peer()
        peer.driver('AddMatch', 's', text("type='signal',member='ActivatableServicesChanged'"))
        place.write('services/a.b.service', '[D-BUS Service]\nName=a.b\nExec=/bin/false\n')
        # It may be told of the file under its first name, too.
        names = b''
        while b'a.b\0' not in names:
            got = peer.receive().fields
            if got.get(MEMBER) == 'ActivatableServicesChanged':
                names = peer.driver('ListActivatableNames').body
            if got.get(SENDER) != DRIVER:
                yield f'{got}'
        process.terminate()
        process.communicate(timeout=PATIENCE)


# ---- who may connect ----

def others_need_a_rule():
    with Place(OPEN.replace('<allow user="*"/>', '<allow user="1"/><allow group="2"/>')
               ) as place:
        process = place.start()
        place.peer(uid=0)
        place.peer(uid=1)
        place.peer(uid=2)
        try:
            place.peer(uid=3)
            yield 'somebody else came in'
        except Refused:
            pass
        process.terminate()
        process.communicate(timeout=PATIENCE)


# ---- the log ----

def failing_starts_do_not_fill_the_log():
    """Who has a service that does not start started again and again writes no more than others."""
    with Place() as place:
        place.config(f'{OPEN}<servicedir>{place.path("services")}</servicedir>')
        place.write('services/a.b.service', '[D-BUS Service]\nName=a.b\nExec="open\n')
        process = place.start()
        peer = place.peer()
        for _ in range(200):
            reply = peer.driver('StartServiceByName', 'su', text('a.b') + struct.pack('<I', 0))
            if reply.kind != ERROR:
                yield f'answer {reply.kind}'
        process.terminate()
        lines = process.communicate(timeout=PATIENCE)[1].splitlines()
    if not any('left out' in line for line in lines):
        yield 'nothing is left out'
    # Two lines for each of them would be 400; a start that fails like that takes no time.
    if len(lines) >= 200:
        yield f'{len(lines)} lines'


def main():
    plan = Plan()
    plan.check('options in all their forms', words_of_their_own())
    plan.check('wrong options are refused', wrong_options())
    plan.check('what it is', information())
    plan.check('a configuration that is a descriptor', configuration_from_a_descriptor())
    plan.check('called dbus-daemon', by_a_symbolic_link())
    plan.check('in the background', background())
    plan.check('in the background, failing', background_that_fails())
    plan.check('options overrule the configuration', options_overrule_the_configuration())
    plan.check('two at once', private_domains())
    for how in 'signal', 'call':
        plan.check(f'policy is read again: {how}', policy_is_read_again(how))
    plan.check('broken files change nothing', broken_files_change_nothing())
    plan.check('directories are watched', directories_are_watched())
    if not REFERENCE:
        plan.check('failing starts', failing_starts_do_not_fill_the_log())
    plan.check('new services are announced', new_services_are_announced())
    if not REFERENCE:
        plan.check('links and new directories', symbolic_links_and_new_directories_are_watched())
        plan.check('nothing to authenticate with', nothing_to_authenticate_with())
        plan.check('transports that are not there', transports_that_are_not_there())
    if ROOT:
        plan.check('as another user', another_user())
        plan.check('others need a rule to connect', others_need_a_rule())
    if ROOT and not REFERENCE:
        plan.check('a user that is not there', user_that_is_not_there())
    plan.finish()


if __name__ == '__main__':
    main()
