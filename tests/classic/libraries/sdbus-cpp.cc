// SPDX-License-Identifier: LGPL-2.1-or-later
// The contract of libraries.py with sdbus-c++.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <future>
#include <iostream>
#include <map>
#include <sdbus-c++/sdbus-c++.h>
#include <sys/stat.h>
#include <unistd.h>

static const char FACE[] = "org.example.Library";
static const char PATH[] = "/org/example/library";
static const char PROPERTIES[] = "org.freedesktop.DBus.Properties";
static const char DRIVER[] = "org.freedesktop.DBus";
static const char FAILED[] = "org.example.Error.Failed";
// Only ends a hang; 25 seconds by default.
static const std::chrono::minutes PATIENCE(5);

typedef std::vector<sdbus::Struct<int32_t, sdbus::Variant>> Pairs;
typedef std::map<std::string, Pairs> Nested;
typedef std::map<std::string, sdbus::Variant> Values;

static void check(bool good, const std::string &what)
{
	if (good)
		return;
	std::cerr << what << std::endl;
	_exit(1);
}

// ---- service ----

static int serve(const std::string &name)
{
	auto bus = sdbus::createSessionBusConnection();
	auto object = sdbus::createObject(*bus, PATH);
	uint32_t level = 1;

	object->registerMethod("Nest").onInterface(FACE).implementedAs(
		[](const Nested &value) { return value; });
	object->registerMethod("Fail").onInterface(FACE).implementedAs(
		[]() { throw sdbus::Error(FAILED, "as you wish"); });
	object->registerMethod("Fd").onInterface(FACE).implementedAs(
		[](const sdbus::UnixFd &fd) { return fd; });
	object->registerSignal("Tick").onInterface(FACE).withParameters<uint32_t>();
	object->registerMethod("Emit").onInterface(FACE).implementedAs([&](const uint32_t &value) {
		object->emitSignal("Tick").onInterface(FACE).withArguments(value);
	});
	object->registerMethod("Quit").onInterface(FACE).implementedAs([&]() {
		bus->releaseName(name);
		bus->leaveEventLoop();
	});
	object->registerProperty("Level")
		.onInterface(FACE)
		.withGetter([&]() { return level; })
		.withSetter([&](const uint32_t &value) {
			level = value;
			object->emitPropertiesChangedSignal(FACE, { "Level" });
		});
	object->finishRegistration();
	bus->requestName(name);
	puts("ready");
	fflush(stdout);
	bus->enterEventLoop();
	return 0;
}

// ---- client ----

class Client
{
      public:
	explicit Client(const std::string &name)
		: name(name), bus(sdbus::createSessionBusConnection()),
		  face(sdbus::createProxy(*bus, name, PATH)),
		  driver(sdbus::createProxy(*bus, DRIVER, "/org/freedesktop/DBus"))
	{
		face->uponSignal("Tick").onInterface(FACE).call(
			[this](const uint32_t &value) { ticked.set_value(value); });
		face->uponSignal("PropertiesChanged")
			.onInterface(PROPERTIES)
			.call([this](const std::string &which, const Values &values,
				     const std::vector<std::string> &) {
				check(which == FACE, which);
				if (watching.exchange(false))
					properties.set_value(values.at("Level").get<uint32_t>());
			});
		face->finishRegistration();
		driver->uponSignal("NameOwnerChanged")
			.onInterface(DRIVER)
			.call([this](const std::string &whose, const std::string &before,
				     const std::string &now) {
				if (whose == this->name && !before.empty() && now.empty())
					left.set_value();
			});
		driver->finishRegistration();
		bus->enterEventLoopAsync();
	}

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

      private:
	std::string name;
	std::unique_ptr<sdbus::IConnection> bus;
	std::unique_ptr<sdbus::IProxy> face, driver;
	std::atomic<bool> watching = false;
	std::promise<uint32_t> ticked, properties;
	std::promise<void> left;

	/* Call a method that has no result. */
	template <typename... Arguments>
	void call(const std::string &method, const Arguments &...arguments)
	{
		face->callMethod(method)
			.onInterface(FACE)
			.withTimeout(PATIENCE)
			.withArguments(arguments...)
			.storeResultsTo();
	}

	/* Call one of the interface @of with a result. */
	template <typename Result, typename... Arguments>
	Result get(const char *of, const std::string &method, const Arguments &...arguments)
	{
		Result result;

		face->callMethod(method)
			.onInterface(of)
			.withTimeout(PATIENCE)
			.withArguments(arguments...)
			.storeResultsTo(result);
		return result;
	}

	std::string error_of(const std::string &method, std::string *message);
	uint32_t level();
	void set_level();
};

void Client::nested()
{
	const Nested value = { { "one",
				 { { -1, sdbus::Variant(std::string("text")) },
				   { 2, sdbus::Variant(std::vector<std::string>{ "x" }) } } },
			       { "none", {} } };
	const Nested back = get<Nested>(FACE, "Nest", value);

	check(back.size() == 2 && back.at("none").empty(), "not two");
	const Pairs &one = back.at("one");
	check(one.size() == 2 && std::get<0>(one[0]) == -1 && std::get<0>(one[1]) == 2,
	      "not these");
	check(std::get<1>(one[0]).get<std::string>() == "text", "not the text");
	check(std::get<1>(one[1]).get<std::vector<std::string>>() ==
		      std::vector<std::string>{ "x" },
	      "not the array");
}

std::string Client::error_of(const std::string &method, std::string *message)
{
	try {
		call(method);
	} catch (const sdbus::Error &e) {
		*message = e.getMessage();
		return e.getName();
	}
	return "";
}

void Client::error()
{
	std::string message;

	check(error_of("Fail", &message) == FAILED, message);
	check(message.find("as you wish") == 0, message);
}

void Client::unknown()
{
	static const std::string end = ".UnknownMethod";
	std::string message, error = error_of("Nothing", &message);

	check(error.size() > end.size() && error.substr(error.size() - end.size()) == end, error);
}

void Client::fd()
{
	struct stat before, after;
	int ends[2];

	check(pipe2(ends, O_CLOEXEC) == 0, "pipe2");
	const sdbus::UnixFd back = get<sdbus::UnixFd>(FACE, "Fd", sdbus::UnixFd(ends[0]));
	check(fstat(ends[0], &before) == 0 && fstat(back.get(), &after) == 0, "fstat");
	check(before.st_dev == after.st_dev && before.st_ino == after.st_ino, "another file");
	close(ends[0]);
	close(ends[1]);
}

uint32_t Client::level()
{
	return face->getProperty("Level").onInterface(FACE).get<uint32_t>();
}

void Client::set_level()
{
	face->setProperty("Level").onInterface(FACE).toValue(uint32_t{ 77 });
}

void Client::property()
{
	check(level() == 1, "not 1");
	set_level();
	check(level() == 77, "not 77");
	const Values values = get<Values>(PROPERTIES, "GetAll", std::string(FACE));
	check(values.size() == 1 && values.at("Level").get<uint32_t>() == 77, "not all");
}

void Client::changed()
{
	watching = true;
	set_level();
	check(properties.get_future().get() == 77, "not 77");
}

void Client::signal()
{
	call("Emit", uint32_t{ 4711 });
	check(ticked.get_future().get() == 4711, "not 4711");
}

void Client::introspection()
{
	static const std::string type = "a{sa(iv)}";
	const std::string xml =
		get<std::string>("org.freedesktop.DBus.Introspectable", "Introspect");
	const size_t first = xml.find(type);
	check(first != xml.npos && xml.find(type, first + 1) != xml.npos, xml);
}

void Client::taken()
{
	uint32_t result = 0;

	driver->callMethod("RequestName")
		.onInterface(DRIVER)
		.withTimeout(PATIENCE)
		.withArguments(name, uint32_t{ 4 })
		.storeResultsTo(result);
	check(result == 3, "RequestName: " + std::to_string(result));
}

void Client::gone()
{
	call("Quit");
	left.get_future().wait();
}

static int ask(const std::string &name, int n, char **checks)
{
	static const std::map<std::string, void (Client::*)()> all = {
		{ "nested", &Client::nested },	   { "error", &Client::error },
		{ "unknown", &Client::unknown },   { "fd", &Client::fd },
		{ "property", &Client::property }, { "changed", &Client::changed },
		{ "signal", &Client::signal },	   { "introspection", &Client::introspection },
		{ "taken", &Client::taken },	   { "gone", &Client::gone },
	};
	Client client(name);

	for (int i = 0; i < n; i++) {
		(client.*all.at(checks[i]))();
		std::cout << "ok " << checks[i] << std::endl;
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc >= 3 && argv[1] == std::string("serve"))
		return serve(argv[2]);
	if (argc >= 3 && argv[1] == std::string("ask"))
		return ask(argv[2], argc - 3, argv + 3);
	return 2;
}
