// SPDX-License-Identifier: LGPL-2.1-or-later
//! The contract of libraries.py with zbus.
use std::cell::Cell;
use std::collections::HashMap;
use std::convert::{TryFrom, TryInto};
use std::error::Error;
use std::os::unix::io::{AsRawFd, FromRawFd};
use std::os::unix::net::UnixStream;
use std::rc::Rc;

use zbus::{dbus_interface, fdo, Connection, DBusError, Message, MessageType, ObjectServer, Proxy};
use zvariant::{Fd, ObjectPath, OwnedValue, Value};

const FACE: &str = "org.example.Library";
const PATH: &str = "/org/example/library";
const DRIVER: &str = "org.freedesktop.DBus";
const PROPERTIES: &str = "org.freedesktop.DBus.Properties";
const FAILED: &str = "org.example.Error.Failed";

type Nested = HashMap<String, Vec<(i32, OwnedValue)>>;
type Outcome<T> = Result<T, Box<dyn Error>>;

// ---- service ----

#[derive(DBusError, Debug)]
#[dbus_error(prefix = "org.example.Error")]
enum Refusal {
    ZBus(zbus::Error),
    Failed(String),
}

struct Service {
    level: u32,
    leaving: Rc<Cell<bool>>,
}

#[dbus_interface(name = "org.example.Library")]
impl Service {
    fn nest(&self, value: Nested) -> Nested {
        value
    }

    fn fd(&self, fd: Fd) -> Fd {
        fd
    }

    fn emit(&self, value: u32) -> zbus::Result<()> {
        self.tick(value)
    }

    fn quit(&self) {
        self.leaving.set(true);
    }

    #[dbus_interface(signal)]
    fn tick(&self, value: u32) -> zbus::Result<()>;

    #[dbus_interface(property)]
    fn level(&self) -> u32 {
        self.level
    }

    #[dbus_interface(property)]
    fn set_level(&mut self, value: u32) {
        self.level = value;
    }
}

/// The macro's setter tells nobody: done here, for a call that has been answered.
fn tell(bus: &Connection, call: &Message) -> Outcome<()> {
    if call.header()?.member()? != Some("Set") {
        return Ok(());
    }
    let (face, name, value): (String, String, OwnedValue) = call.body()?;
    let changed = HashMap::from([(name, value)]);
    let none: Vec<&str> = vec![];
    bus.emit_signal(None, PATH, PROPERTIES, "PropertiesChanged", &(face, changed, none))?;
    Ok(())
}

fn serve(name: &str) -> Outcome<()> {
    let bus = Connection::new_session()?;
    let leaving = Rc::new(Cell::new(false));
    let service = Service { level: 1, leaving: leaving.clone() };
    let mut server = ObjectServer::new(&bus);
    server.at(&ObjectPath::try_from(PATH)?, service)?;
    let driver = fdo::DBusProxy::new(&bus)?;
    let reply = driver.request_name(name, fdo::RequestNameFlags::DoNotQueue.into())?;
    assert!(reply == fdo::RequestNameReply::PrimaryOwner);
    println!("ready");
    while !leaving.get() {
        let message = bus.receive_message()?;
        // Methods of the macro know the errors of D-Bus only.
        if message.header()?.member()? == Some("Fail") {
            Refusal::Failed("as you wish".into()).reply(&bus, &message)?;
        } else if server.dispatch_message(&message)? {
            tell(&bus, &message)?;
        }
    }
    driver.release_name(name)?;
    Ok(())
}

// ---- client ----

struct Client<'a> {
    bus: &'a Connection,
    name: &'a str,
    face: Proxy<'a>,
    properties: Proxy<'a>,
}

impl<'a> Client<'a> {
    /// Body of the next signal of that name.
    fn next<T>(&self, member: &str) -> Outcome<T>
    where
        T: serde::de::DeserializeOwned + zvariant::Type,
    {
        let signal = self.bus.receive_specific(|message| {
            let header = message.header()?;
            Ok(header.message_type()? == MessageType::Signal && header.member()? == Some(member))
        })?;
        Ok(signal.body()?)
    }

    fn subscribe(&self, rule: &str) -> Outcome<()> {
        fdo::DBusProxy::new(self.bus)?.add_match(rule)?;
        Ok(())
    }

    fn fails(&self, method: &str) -> Outcome<(String, String)> {
        match self.face.call_method(method, &()) {
            Err(zbus::Error::MethodError(name, text, _)) => Ok((name, text.unwrap_or_default())),
            other => Err(format!("{:?}", other).into()),
        }
    }

    fn nested(&self) -> Outcome<()> {
        let one: Vec<(i32, Value)> = vec![(-1, "text".into()), (2, vec![3i32, 4].into())];
        let value = HashMap::from([("one", one), ("none", vec![])]);
        let back: Nested = self.face.call("Nest", &value)?;
        assert!(back.len() == 2 && back["none"].is_empty());
        assert!(back["one"].len() == 2 && back["one"][0].0 == -1 && back["one"][1].0 == 2);
        let text: &str = back["one"][0].1.downcast_ref().ok_or("no text")?;
        assert_eq!(text, "text");
        let numbers: Vec<i32> = back["one"][1].1.clone().try_into()?;
        assert_eq!(numbers, [3, 4]);
        Ok(())
    }

    fn error(&self) -> Outcome<()> {
        let (name, text) = self.fails("Fail")?;
        assert!(name == FAILED && text == "as you wish", "{} {}", name, text);
        Ok(())
    }

    fn unknown(&self) -> Outcome<()> {
        let (name, _) = self.fails("Nothing")?;
        assert!(name.ends_with(".UnknownMethod"), "{}", name);
        Ok(())
    }

    /// One end goes there and comes back: what is written to it arrives at the other.
    fn fd(&self) -> Outcome<()> {
        use std::io::{Read, Write};
        let (mut mine, theirs) = UnixStream::pair()?;
        let mut answer = self.face.call_method("Fd", &Fd::from(&theirs))?;
        let back = answer.body::<Fd>()?.as_raw_fd();
        assert_ne!(back, theirs.as_raw_fd());
        answer.disown_fds();
        let mut back = unsafe { UnixStream::from_raw_fd(back) };
        let mut text = [0; 4];
        back.write_all(b"text")?;
        mine.read_exact(&mut text)?;
        assert_eq!(&text, b"text");
        Ok(())
    }

    fn property(&self) -> Outcome<()> {
        assert_eq!(self.face.get_property::<u32>("Level")?, 1);
        self.face.set_property("Level", 77u32)?;
        assert_eq!(self.face.get_property::<u32>("Level")?, 77);
        let all: HashMap<String, OwnedValue> = self.properties.call("GetAll", &FACE)?;
        assert!(all.len() == 1 && all["Level"] == OwnedValue::from(77u32));
        Ok(())
    }

    fn changed(&self) -> Outcome<()> {
        self.subscribe("type='signal',interface='org.freedesktop.DBus.Properties'")?;
        self.face.set_property("Level", 77u32)?;
        let (face, values, _): (String, HashMap<String, OwnedValue>, Vec<String>) =
            self.next("PropertiesChanged")?;
        assert!(face == FACE && values["Level"] == OwnedValue::from(77u32));
        Ok(())
    }

    fn signal(&self) -> Outcome<()> {
        self.subscribe("type='signal',interface='org.example.Library',member='Tick'")?;
        self.face.call::<_, ()>("Emit", &4711u32)?;
        assert_eq!(self.next::<u32>("Tick")?, 4711);
        Ok(())
    }

    fn introspection(&self) -> Outcome<()> {
        let xml = self.face.introspect()?;
        assert!(xml.contains("Nest") && xml.contains("a{sa(iv)}"), "{}", xml);
        Ok(())
    }

    fn taken(&self) -> Outcome<()> {
        let driver = fdo::DBusProxy::new(self.bus)?;
        let reply = driver.request_name(self.name, fdo::RequestNameFlags::DoNotQueue.into())?;
        assert!(reply == fdo::RequestNameReply::Exists);
        Ok(())
    }

    fn gone(&self) -> Outcome<()> {
        self.subscribe(&format!("type='signal',sender='{}',arg0='{}'", DRIVER, self.name))?;
        self.face.call::<_, ()>("Quit", &())?;
        let (_, before, after): (String, String, String) = self.next("NameOwnerChanged")?;
        assert!(!before.is_empty() && after.is_empty());
        Ok(())
    }

    fn check(&self, what: &str) -> Outcome<()> {
        match what {
            "nested" => self.nested(),
            "error" => self.error(),
            "unknown" => self.unknown(),
            "fd" => self.fd(),
            "property" => self.property(),
            "changed" => self.changed(),
            "signal" => self.signal(),
            "introspection" => self.introspection(),
            "taken" => self.taken(),
            "gone" => self.gone(),
            _ => Err(what.into()),
        }
    }
}

fn ask(name: &str, checks: &[String]) -> Outcome<()> {
    let bus = Connection::new_session()?;
    let client = Client {
        bus: &bus,
        name,
        face: Proxy::new(&bus, name, PATH, FACE)?,
        properties: Proxy::new(&bus, name, PATH, PROPERTIES)?,
    };
    for check in checks {
        client.check(check)?;
        println!("ok {}", check);
    }
    Ok(())
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments[1].as_str() {
        "serve" => serve(&arguments[2]),
        _ => ask(&arguments[2], &arguments[3..]),
    }
}
