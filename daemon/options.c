// SPDX-License-Identifier: LGPL-2.1-or-later
/* The command line. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel.h"
#include "options.h"

#define SESSION_CONF "/usr/share/dbus-1/session.conf"
#define SYSTEM_CONF  "/usr/share/dbus-1/system.conf"

static const char help_text[] =
	"Usage: kdbusd [OPTION]...\n"
	"The user engine of kdbus: a domain of buses, and one bus in it; and the message bus of\n"
	"D-Bus programs, in the place of dbus-daemon.\n"
	"\n"
	"A domain:\n"
	"  --engine user|kernel    who carries messages: this daemon and shared memory, or the\n"
	"                          module kdbus ($KDBUS_ENGINE, else user)\n"
	"  --domain DIR            serve DIR ($XDG_RUNTIME_DIR/kdbus, as root /run/kdbus; with a\n"
	"                          D-Bus bus, a private one); or use the kdbusfs there\n"
	"                          (" KERNEL_DOMAIN ")\n"
	"  --system                with --domain: make the bus 0-system, open to all users,\n"
	"                          instead of UID-user\n"
	"\n"
	"A D-Bus bus, with the options of dbus-daemon:\n"
	"  --session, --system     configured by " SESSION_CONF " or\n"
	"                          " SYSTEM_CONF "\n"
	"  --config-file=FILE      configured by FILE\n"
	"  --address=ADDRESS       listen there and nowhere else\n"
	"  --fork, --nofork        go to the background or not, whatever is configured\n"
	"  --print-pid[=FD]        print the process id to FD (1) once it serves\n"
	"  --nopidfile             write no pid file\n"
	"  --syslog, --syslog-only, --nosyslog\n"
	"                          log to syslog and stderr, to syslog, to stderr\n"
	"  --systemd-activation    have systemd start services\n"
	"  --introspect            print the interfaces of the bus\n"
	"\n"
	"  --print-address[=FD]    print the address of the bus to FD (1) once it serves\n"
	"  --help                  show this help\n"
	"  --version               show the version\n";

int options_usage(const char *format, const char *what)
{
	fprintf(stderr, "kdbusd: ");
	fprintf(stderr, format, what);
	fprintf(stderr, "; for example: kdbusd --session --print-address\n");
	return 2;
}

static int parse_fd(const char *text, int *ret)
{
	char *end;
	long fd = strtol(text, &end, 10);

	if (end == text || *end || fd < 0 || fd > 1 << 20)
		return -EINVAL;
	*ret = (int)fd;
	return 0;
}

/* The command line while it is read */
struct parser {
	struct options *o;
	char **at; /* next word */
	const char *engine;
	bool session;
	bool help;
	bool version;
};

/* How an option takes its value: "--name=VALUE", or the next word */
enum value {
	NONE,
	NEEDED,
	FD, /* optional, a number */
};

struct option {
	const char *name;
	enum value value;
	int (*take)(struct parser *p, const char *name, const char *value);
};

static int take_engine(struct parser *p, const char *name, const char *value)
{
	p->engine = value;
	return 1;
}

static int take_domain(struct parser *p, const char *name, const char *value)
{
	p->o->domain = value;
	return 1;
}

static int set_config(struct parser *p, const char *value)
{
	if (p->o->config_file || p->o->system || p->session)
		return -options_usage("only one configuration is possible, not '%s' as well",
				      value);
	return 1;
}

static int take_config_file(struct parser *p, const char *name, const char *value)
{
	int r = set_config(p, value);

	if (!*value)
		return -options_usage("%s needs a file", name);
	p->o->config_file = value;
	return r;
}

static int take_session(struct parser *p, const char *name, const char *value)
{
	int r = set_config(p, name);

	p->session = true;
	return r;
}

/* What it means depends on --domain, see finish(). */
static int take_system(struct parser *p, const char *name, const char *value)
{
	int r = p->session || p->o->system ? set_config(p, name) : 1;

	p->o->system = true;
	return r;
}

static int take_address(struct parser *p, const char *name, const char *value)
{
	if (p->o->address)
		return -options_usage("only one --address is possible, not '%s' as well", value);
	p->o->address = value;
	return 1;
}

static int take_print_address(struct parser *p, const char *name, const char *value)
{
	p->o->address_fd = 1;
	if (value && parse_fd(value, &p->o->address_fd) < 0)
		return -options_usage("--print-address needs a descriptor number, not '%s'", value);
	return 1;
}

static int take_print_pid(struct parser *p, const char *name, const char *value)
{
	p->o->pid_fd = 1;
	if (value && parse_fd(value, &p->o->pid_fd) < 0)
		return -options_usage("--print-pid needs a descriptor number, not '%s'", value);
	return 1;
}

static int take_fork(struct parser *p, const char *name, const char *value)
{
	p->o->fork = true;
	p->o->nofork = false;
	return 1;
}

static int take_nofork(struct parser *p, const char *name, const char *value)
{
	p->o->fork = false;
	p->o->nofork = true;
	return 1;
}

static int take_nopidfile(struct parser *p, const char *name, const char *value)
{
	p->o->pidfile = false;
	return 1;
}

static int take_log(struct parser *p, const char *name, const char *value)
{
	p->o->log = !strcmp(name, "--nosyslog") ? LOG_TO_STDERR :
		    !strcmp(name, "--syslog")	? LOG_TO_BOTH :
						  LOG_TO_SYSLOG;
	return 1;
}

static int take_systemd(struct parser *p, const char *name, const char *value)
{
	p->o->systemd_activation = true;
	return 1;
}

static int take_introspect(struct parser *p, const char *name, const char *value)
{
	p->o->introspect = true;
	return 1;
}

static int take_help(struct parser *p, const char *name, const char *value)
{
	p->help = true;
	return 1;
}

static int take_version(struct parser *p, const char *name, const char *value)
{
	p->version = true;
	return 1;
}

static const struct option options[] = {
	{ "--address", NEEDED, take_address },
	{ "--config-file", NEEDED, take_config_file },
	{ "--domain", NEEDED, take_domain },
	{ "--engine", NEEDED, take_engine },
	{ "--fork", NONE, take_fork },
	{ "--help", NONE, take_help },
	{ "--introspect", NONE, take_introspect },
	{ "--nofork", NONE, take_nofork },
	{ "--nopidfile", NONE, take_nopidfile },
	{ "--nosyslog", NONE, take_log },
	{ "--print-address", FD, take_print_address },
	{ "--print-pid", FD, take_print_pid },
	{ "--session", NONE, take_session },
	{ "--syslog", NONE, take_log },
	{ "--syslog-only", NONE, take_log },
	{ "--system", NONE, take_system },
	{ "--systemd-activation", NONE, take_systemd },
	{ "--version", NONE, take_version },
};

/* "--name" or "--name=VALUE" */
static const struct option *find_option(const char *word, const char **ret_value)
{
	const char *equals = strchr(word, '=');
	const size_t len = equals ? (size_t)(equals - word) : strlen(word);
	size_t i;

	for (i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		if (strlen(options[i].name) == len && !strncmp(options[i].name, word, len)) {
			*ret_value = equals ? equals + 1 : NULL;
			return &options[i];
		}
	}
	return NULL;
}

static int take_word(struct parser *p)
{
	const char *word = *p->at++, *value = NULL;
	const struct option *option = find_option(word, &value);

	if (!option)
		return -options_usage(*word == '-' ? "unknown or incomplete option '%s'" :
						     "unexpected argument '%s'",
				      word);
	if (option->value == NONE && value)
		return -options_usage("%s takes no value", option->name);
	/* As in dbus-daemon, the number may be a word of its own. */
	if (option->value == FD && !value && *p->at && **p->at != '-')
		value = *p->at++;
	if (option->value == NEEDED && !value) {
		if (!*p->at)
			return -options_usage("unknown or incomplete option '%s'", word);
		value = *p->at++;
	}
	return option->take(p, option->name, value);
}

static int parse_engine(struct parser *p)
{
	const char *name = p->engine;

	/* The variable is for programs: a D-Bus bus is of that engine only if it is said so. */
	if (!name && !p->o->config_file)
		name = getenv("KDBUS_ENGINE");
	if (!name || !*name || !strcmp(name, "user"))
		return 1;
	p->o->kernel = true;
	return strcmp(name, "kernel") ?
		       -options_usage("no engine '%s', there are user and kernel", name) :
		       1;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Does an option make sense for a classic bus only? */
static bool wants_classic(const struct options *o)
{
	return o->address || o->fork || o->pid_fd >= 0 || o->systemd_activation ||
	       !strcmp(o->program, "dbus-daemon");
}

static int finish(struct parser *p)
{
	struct options *o = p->o;

	if (p->session)
		o->config_file = SESSION_CONF;
	if (o->system && !o->domain && !o->config_file && !p->engine)
		o->config_file = SYSTEM_CONF;
	if (!o->config_file && !o->introspect && wants_classic(o))
		return -options_usage("no configuration of a bus%s: give --session, --system or "
				      "--config-file=FILE",
				      "");
	return parse_engine(p);
}

int options_parse(int argc, char **argv, struct options *ret)
{
	struct parser p = { .o = ret, .at = argv + !!argc };
	int r = 1;

	*ret = (struct options){
		.program = argc ? base_name(argv[0]) : "kdbusd",
		.address_fd = -1,
		.pid_fd = -1,
		.pidfile = true,
	};
	while (*p.at && r > 0)
		r = take_word(&p);
	if (r <= 0)
		return r;
	if (p.help || p.version) {
		fputs(p.help ? help_text : "kdbusd " KDBUS_VERSION "\n", stdout);
		return 0;
	}
	return finish(&p);
}
