// SPDX-License-Identifier: LGPL-2.1-or-later
// The contract of libraries.py with QtDBus.
#include <QtDBus>
#include <cstdio>
#include <sys/stat.h>
#include <unistd.h>

static const char FACE[] = "org.example.Library";
static const char PATH[] = "/org/example/library";
static const char PROPERTIES[] = "org.freedesktop.DBus.Properties";
static const char FAILED[] = "org.example.Error.Failed";
// Only ends a hang; 25 seconds by default.
static const int PATIENCE_MS = 300000;

static void check(bool good, const QString &what)
{
	if (good)
		return;
	fprintf(stderr, "%s\n", qPrintable(what));
	exit(1);
}

// ---- a{sa(iv)} ----

struct Pair {
	int number;
	QDBusVariant value;
};
typedef QList<Pair> Pairs;
typedef QMap<QString, Pairs> Nested;
Q_DECLARE_METATYPE(Pair)
Q_DECLARE_METATYPE(Pairs)
Q_DECLARE_METATYPE(Nested)

static QDBusArgument &operator<<(QDBusArgument &to, const Pair &pair)
{
	to.beginStructure();
	to << pair.number << pair.value;
	to.endStructure();
	return to;
}

static const QDBusArgument &operator>>(const QDBusArgument &from, Pair &pair)
{
	from.beginStructure();
	from >> pair.number >> pair.value;
	from.endStructure();
	return from;
}

// ---- service ----

class Service : public QObject, protected QDBusContext
{
	Q_OBJECT
	Q_CLASSINFO("D-Bus Interface", "org.example.Library")
	Q_PROPERTY(uint Level READ level WRITE setLevel)

public:
	explicit Service(const QString &name) : name(name) {}

	uint level() const
	{
		return value;
	}

	void setLevel(uint to)
	{
		QDBusMessage changed =
			QDBusMessage::createSignal(PATH, PROPERTIES, "PropertiesChanged");

		value = to;
		changed << FACE << QVariantMap{ { "Level", to } } << QStringList();
		QDBusConnection::sessionBus().send(changed);
	}

public slots:
	Nested Nest(const Nested &value)
	{
		return value;
	}

	void Fail()
	{
		sendErrorReply(FAILED, "as you wish");
	}

	QDBusUnixFileDescriptor Fd(const QDBusUnixFileDescriptor &fd)
	{
		return fd;
	}

	void Emit(uint value)
	{
		emit Tick(value);
	}

	void Quit()
	{
		QDBusConnection bus = QDBusConnection::sessionBus();

		setDelayedReply(true);
		bus.send(message().createReply());
		bus.unregisterService(name);
		QCoreApplication::quit();
	}

signals:
	void Tick(uint value);

private:
	QString name;
	uint value = 1;
};

static int serve(const QString &name)
{
	QDBusConnection bus = QDBusConnection::sessionBus();
	Service service(name);

	check(bus.registerObject(PATH, &service,
				 QDBusConnection::ExportAllContents), "registerObject");
	check(bus.registerService(name), bus.lastError().message());
	puts("ready");
	fflush(stdout);
	return QCoreApplication::exec();
}

// ---- client ----

class Client : public QObject
{
	Q_OBJECT

public:
	explicit Client(const QString &name)
		: name(name), bus(QDBusConnection::sessionBus()), face(name, PATH, FACE, bus),
		  properties(name, PATH, PROPERTIES, bus)
	{
		face.setTimeout(PATIENCE_MS);
		properties.setTimeout(PATIENCE_MS);
	}

public slots:
	void nested();
	void error();
	void unknown();
	void fd();
	void property();
	void changed();
	void signal();
	void introspection();
	void taken();
	void gone();

	void arrived(const QDBusMessage &message)
	{
		seen = message.arguments();
		loop.quit();
	}

private:
	QString name;
	QDBusConnection bus;
	QDBusInterface face;
	QDBusInterface properties;
	QEventLoop loop;
	QVariantList seen;

	uint level();
	void setLevel();
	void subscribe(const QString &from, const QString &face, const QString &member,
		       const QStringList &arguments = QStringList());
	QVariantList next();
};

void Client::nested()
{
	Nested value = {
		{ "one", { { -1, QDBusVariant("text") }, { 2, QDBusVariant(QStringList{ "x" }) } } },
		{ "none", {} }
	};
	QDBusReply<Nested> reply = face.call("Nest", QVariant::fromValue(value));

	check(reply.isValid(), reply.error().message());
	check(reply.value().size() == 2 && reply.value()["none"].isEmpty(), "not two");
	Pairs back = reply.value()["one"];
	check(back.size() == 2 && back[0].number == -1 && back[1].number == 2, "not these");
	check(back[0].value.variant() == "text", "not the text");
	check(back[1].value.variant().toStringList() == QStringList{ "x" }, "not the array");
}

void Client::error()
{
	QDBusMessage reply = face.call("Fail");

	check(reply.errorName() == FAILED, reply.errorName());
	check(reply.errorMessage().startsWith("as you wish"), reply.errorMessage());
}

void Client::unknown()
{
	QDBusMessage reply = face.call("Nothing");

	check(reply.errorName().endsWith(".UnknownMethod"), reply.errorName());
}

void Client::fd()
{
	struct stat mine, theirs;
	int ends[2];

	check(pipe(ends) == 0, "pipe");
	QDBusReply<QDBusUnixFileDescriptor> reply =
		face.call("Fd", QVariant::fromValue(QDBusUnixFileDescriptor(ends[0])));
	check(reply.isValid(), reply.error().message());
	check(fstat(ends[0], &mine) == 0 && fstat(reply.value().fileDescriptor(), &theirs) == 0 &&
	      mine.st_ino == theirs.st_ino && mine.st_dev == theirs.st_dev, "another file");
	close(ends[0]);
	close(ends[1]);
}

uint Client::level()
{
	QDBusReply<QDBusVariant> reply = properties.call("Get", FACE, "Level");

	check(reply.isValid(), reply.error().message());
	return reply.value().variant().toUInt();
}

void Client::setLevel()
{
	QDBusMessage reply =
		properties.call("Set", FACE, "Level", QVariant::fromValue(QDBusVariant(77U)));

	check(reply.type() == QDBusMessage::ReplyMessage, reply.errorMessage());
}

void Client::property()
{
	check(level() == 1, "Level is not 1");
	setLevel();
	check(level() == 77, "Level is not 77");
	QDBusReply<QVariantMap> all = properties.call("GetAll", FACE);
	check(all.isValid() && all.value() == QVariantMap{ { "Level", 77U } }, "GetAll");
}

void Client::subscribe(const QString &from, const QString &face, const QString &member,
		       const QStringList &arguments)
{
	seen.clear();
	check(bus.connect(from, QString(), face, member, arguments, QString(), this,
			  SLOT(arrived(QDBusMessage))), "connect");
}

QVariantList Client::next()
{
	while (seen.isEmpty())
		loop.exec();
	return seen;
}

void Client::changed()
{
	subscribe(name, PROPERTIES, "PropertiesChanged");
	setLevel();
	QVariantList arguments = next();
	check(arguments[0] == FACE, "another interface");
	check(qdbus_cast<QVariantMap>(arguments[1]) == QVariantMap{ { "Level", 77U } }, "not 77");
}

void Client::signal()
{
	subscribe(name, FACE, "Tick");
	check(face.call("Emit", 4711U).type() == QDBusMessage::ReplyMessage, "Emit");
	check(next() == QVariantList{ 4711U }, "another number");
}

void Client::introspection()
{
	QDBusInterface object(name, PATH, "org.freedesktop.DBus.Introspectable", bus);
	QDBusReply<QString> xml = object.call("Introspect");

	check(xml.value().contains("\"Nest\"") && xml.value().contains("a{sa(iv)}"), xml.value());
}

void Client::taken()
{
	QDBusReply<QDBusConnectionInterface::RegisterServiceReply> reply =
		bus.interface()->registerService(name, QDBusConnectionInterface::DontQueueService);

	check(reply == QDBusConnectionInterface::ServiceNotRegistered, reply.error().message());
}

void Client::gone()
{
	subscribe("org.freedesktop.DBus", "org.freedesktop.DBus", "NameOwnerChanged", { name });
	check(face.call("Quit").type() == QDBusMessage::ReplyMessage, "Quit");
	QVariantList arguments = next();
	check(!arguments[1].toString().isEmpty() && arguments[2].toString().isEmpty(), "an owner");
}

static int ask(const QString &name, const QStringList &checks)
{
	Client client(name);

	for (const QString &what : checks) {
		check(QMetaObject::invokeMethod(&client, qPrintable(what)), what);
		printf("ok %s\n", qPrintable(what));
		fflush(stdout);
	}
	return 0;
}

int main(int argc, char **argv)
{
	QCoreApplication application(argc, argv);
	QStringList arguments = application.arguments();

	qDBusRegisterMetaType<Pair>();
	qDBusRegisterMetaType<Pairs>();
	qDBusRegisterMetaType<Nested>();
	check(QDBusConnection::sessionBus().isConnected(), "no bus");
	if (arguments.value(1) == "serve")
		return serve(arguments.value(2));
	return ask(arguments.value(2), arguments.mid(3));
}

#include "qt.moc"
