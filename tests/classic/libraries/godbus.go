// SPDX-License-Identifier: LGPL-2.1-or-later

// The contract of libraries.py with godbus.
package main

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"syscall"

	"github.com/godbus/dbus"
	"github.com/godbus/dbus/introspect"
	"github.com/godbus/dbus/prop"
)

const (
	face       = "org.example.Library"
	path       = dbus.ObjectPath("/org/example/library")
	failed     = "org.example.Error.Failed"
	properties = "org.freedesktop.DBus.Properties"
)

type pair struct {
	Number int32
	Value  dbus.Variant
}

type nest map[string][]pair

func check(good bool, what ...interface{}) {
	if !good {
		fmt.Fprintln(os.Stderr, what...)
		os.Exit(1)
	}
}

func must(err error) {
	check(err == nil, err)
}

func connect() *dbus.Conn {
	bus, err := dbus.ConnectSessionBus()
	must(err)
	return bus
}

// ---- service ----

type service struct {
	bus     *dbus.Conn
	name    string
	leaving chan bool
}

func (s *service) Nest(value nest) (nest, *dbus.Error) {
	return value, nil
}

func (s *service) Fail() *dbus.Error {
	return dbus.NewError(failed, []interface{}{"as you wish"})
}

func (s *service) Fd(fd dbus.UnixFD) (dbus.UnixFD, *dbus.Error) {
	return fd, nil
}

func (s *service) Emit(value uint32) *dbus.Error {
	must(s.bus.Emit(path, face+".Tick", value))
	return nil
}

func (s *service) Quit() *dbus.Error {
	close(s.leaving)
	return nil
}

func serve(name string) {
	bus := connect()
	s := &service{bus, name, make(chan bool)}
	must(bus.Export(s, path, face))
	level, err := prop.Export(bus, path, prop.Map{face: {
		"Level": {Value: uint32(1), Writable: true, Emit: prop.EmitTrue},
	}})
	must(err)
	node := introspect.Node{Name: string(path), Interfaces: []introspect.Interface{
		introspect.IntrospectData, prop.IntrospectData, {
			Name: face, Methods: introspect.Methods(s), Properties: level.Introspection(face),
		}}}
	must(bus.Export(introspect.NewIntrospectable(&node), path, "org.freedesktop.DBus.Introspectable"))
	reply, err := bus.RequestName(name, 0)
	must(err)
	check(reply == dbus.RequestNameReplyPrimaryOwner, "reply", reply)
	fmt.Println("ready")
	<-s.leaving
	_, err = bus.ReleaseName(name)
	must(err)
	must(bus.Close())
}

// ---- client ----

type client struct {
	bus     *dbus.Conn
	name    string
	object  dbus.BusObject
	signals chan *dbus.Signal
}

func (c *client) nested() {
	value := nest{"one": {{-1, dbus.MakeVariant("text")}, {2, dbus.MakeVariant([]int32{3, 4})}},
		"none": {}}
	var back nest
	must(c.object.Call(face+".Nest", 0, value).Store(&back))
	check(reflect.DeepEqual(back, value), back)
}

func (c *client) fails(method string) dbus.Error {
	err, is := c.object.Call(face+"."+method, 0).Err.(dbus.Error)
	check(is, method, "does not fail")
	return err
}

func (c *client) error() {
	err := c.fails("Fail")
	check(err.Name == failed && err.Error() == "as you wish", err)
}

func (c *client) unknown() {
	err := c.fails("Nothing")
	check(strings.HasSuffix(err.Name, ".UnknownMethod"), err)
}

func (c *client) fd() {
	var ends [2]int
	var back dbus.UnixFD
	var mine, theirs syscall.Stat_t
	must(syscall.Pipe(ends[:]))
	must(c.object.Call(face+".Fd", 0, dbus.UnixFD(ends[0])).Store(&back))
	must(syscall.Fstat(ends[0], &mine))
	must(syscall.Fstat(int(back), &theirs))
	check(int(back) != ends[0] && mine.Ino == theirs.Ino && mine.Dev == theirs.Dev, back)
}

func (c *client) level(expected uint32) {
	value, err := c.object.GetProperty(face + ".Level")
	must(err)
	check(value.Value() == expected, value)
}

func (c *client) property() {
	var all map[string]dbus.Variant
	c.level(1)
	must(c.object.SetProperty(face+".Level", dbus.MakeVariant(uint32(77))))
	c.level(77)
	must(c.object.Call(properties+".GetAll", 0, face).Store(&all))
	check(len(all) == 1 && all["Level"].Value() == uint32(77), all)
}

// Body of the next signal called name; what else comes is passed over.
func (c *client) next(name string) []interface{} {
	for signal := range c.signals {
		if signal.Name == name {
			return signal.Body
		}
	}
	check(false, "the bus hung up")
	return nil
}

func (c *client) changed() {
	must(c.bus.AddMatchSignal(dbus.WithMatchInterface(properties), dbus.WithMatchObjectPath(path)))
	must(c.object.SetProperty(face+".Level", dbus.MakeVariant(uint32(77))))
	body := c.next(properties + ".PropertiesChanged")
	values := body[1].(map[string]dbus.Variant)
	check(body[0] == face && values["Level"].Value() == uint32(77), body)
}

func (c *client) signal() {
	must(c.bus.AddMatchSignal(dbus.WithMatchInterface(face), dbus.WithMatchMember("Tick")))
	must(c.object.Call(face+".Emit", 0, uint32(4711)).Err)
	body := c.next(face + ".Tick")
	check(body[0] == uint32(4711), body)
}

func (c *client) introspection() {
	node, err := introspect.Call(c.object)
	must(err)
	for _, i := range node.Interfaces {
		for _, method := range i.Methods {
			if i.Name == face && method.Name == "Nest" {
				check(method.Args[0].Type == "a{sa(iv)}", method)
				return
			}
		}
	}
	check(false, node)
}

func (c *client) taken() {
	reply, err := c.bus.RequestName(c.name, dbus.NameFlagDoNotQueue)
	must(err)
	check(reply == dbus.RequestNameReplyExists, reply)
}

func (c *client) gone() {
	must(c.bus.AddMatchSignal(dbus.WithMatchInterface("org.freedesktop.DBus"),
		dbus.WithMatchMember("NameOwnerChanged"), dbus.WithMatchArg(0, c.name)))
	must(c.object.Call(face+".Quit", 0).Err)
	body := c.next("org.freedesktop.DBus.NameOwnerChanged")
	check(body[0] == c.name && body[1] != "" && body[2] == "", body)
}

func ask(name string, checks []string) {
	bus := connect()
	c := &client{bus, name, bus.Object(name, path), make(chan *dbus.Signal, 100)}
	bus.Signal(c.signals)
	all := map[string]func(){"nested": c.nested, "error": c.error, "unknown": c.unknown,
		"fd": c.fd, "property": c.property, "changed": c.changed, "signal": c.signal,
		"introspection": c.introspection, "taken": c.taken, "gone": c.gone}
	for _, what := range checks {
		all[what]()
		fmt.Println("ok", what)
	}
	must(bus.Close())
}

func main() {
	if os.Args[1] == "serve" {
		serve(os.Args[2])
	} else {
		ask(os.Args[2], os.Args[3:])
	}
}
