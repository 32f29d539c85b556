// SPDX-License-Identifier: LGPL-2.1-or-later
/* Properties of the bus, and its introspection, made from the tables of driver.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"

#define PROPERTIES "org.freedesktop.DBus.Properties"

/* ---- the properties ---- */

static void get_features(struct classic *k, struct dbusp_build *b)
{
	dbusp_open(b, 'a', NULL);
	dbusp_put_string(b, "ActivatableServicesChanged");
	dbusp_put_string(b, "HeaderFiltering");
	if (k->systemd_activation)
		dbusp_put_string(b, "SystemdActivation");
	dbusp_close(b);
}

static void get_interfaces(struct classic *k, struct dbusp_build *b)
{
	dbusp_open(b, 'a', NULL);
	dbusp_put_string(b, "org.freedesktop.DBus.Monitoring");
	dbusp_put_string(b, "org.freedesktop.DBus.Debug.Stats");
	dbusp_close(b);
}

static const struct driver_property properties[] = {
	{ CLASSIC_DRIVER, "Features", "as", get_features },
	{ CLASSIC_DRIVER, "Interfaces", "as", get_interfaces },
};

/* ---- Get, GetAll, Set ---- */

static bool has_interface(struct dbusp_str name)
{
	const struct driver_table *const *table;
	size_t i;

	for (table = driver_tables; *table; table++) {
		for (i = 0; i < (*table)->n_methods; i++) {
			if (dbusp_str_eq(name, dbusp_str((*table)->methods[i].interface)))
				return true;
		}
	}
	return false;
}

static const struct driver_property *find(struct dbusp_str interface, struct dbusp_str name)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(properties); i++) {
		if (dbusp_str_eq(interface, dbusp_str(properties[i].interface)) &&
		    dbusp_str_eq(name, dbusp_str(properties[i].name)))
			return &properties[i];
	}
	return NULL;
}

static bool check_interface(struct driver_call *call, struct dbusp_str interface)
{
	if (has_interface(interface))
		return true;
	driver_error(call->from, call->m, DBUS_ERROR("UnknownInterface"),
		     "Interface \"%s\" not found", interface.s);
	return false;
}

static const struct driver_property *find_or_refuse(struct driver_call *call)
{
	const struct dbusp_str interface = driver_arg_string(call);
	const struct dbusp_str name = driver_arg_string(call);
	const struct driver_property *property;

	if (!check_interface(call, interface))
		return NULL;
	property = find(interface, name);
	if (!property)
		driver_error(call->from, call->m, DBUS_ERROR("UnknownProperty"),
			     "Property \"%s.%s\" not found", interface.s, name.s);
	return property;
}

static void put_value(struct classic *k, struct dbusp_build *b,
		      const struct driver_property *property)
{
	dbusp_open(b, 'v', property->type);
	property->get(k, b);
	dbusp_close(b);
}

static void get(struct driver_call *call)
{
	const struct driver_property *property = find_or_refuse(call);
	struct dbusp_build b;

	if (!property)
		return;
	driver_reply_begin(call, &b, "v");
	put_value(call->classic, &b, property);
	driver_reply_end(call, &b);
}

static void get_all(struct driver_call *call)
{
	const struct dbusp_str interface = driver_arg_string(call);
	struct dbusp_build b;
	size_t i;

	if (!check_interface(call, interface))
		return;
	driver_reply_begin(call, &b, "a{sv}");
	dbusp_open(&b, 'a', NULL);
	for (i = 0; i < ARRAY_SIZE(properties); i++) {
		if (!dbusp_str_eq(interface, dbusp_str(properties[i].interface)))
			continue;
		dbusp_open(&b, '{', NULL);
		dbusp_put_string(&b, properties[i].name);
		put_value(call->classic, &b, &properties[i]);
		dbusp_close(&b);
	}
	dbusp_close(&b);
	driver_reply_end(call, &b);
}

static void set(struct driver_call *call)
{
	const struct driver_property *property = find_or_refuse(call);

	if (property)
		driver_error(call->from, call->m, DBUS_ERROR("PropertyReadOnly"),
			     "Property \"%s.%s\" is read-only", property->interface,
			     property->name);
}

/* ---- Introspect ---- */

static const char xml_start[] =
	"<!DOCTYPE node PUBLIC \"-//freedesktop//DTD D-BUS Object Introspection 1.0//EN\"\n"
	"\"http://www.freedesktop.org/standards/dbus/1.0/introspect.dtd\">\n"
	"<node>\n";

static void put_args(FILE *out, const char *signature, const char *direction)
{
	int n;

	for (; *signature; signature += n) {
		n = (int)dbusp_sig_span(signature);
		fprintf(out, "      <arg %stype=\"%.*s\"/>\n", direction, n, signature);
	}
}

static bool is_here(const struct driver_method *method, bool everything)
{
	return everything || method->flags & DRIVER_ANY_PATH;
}

static void put_methods(FILE *out, const char *interface, bool everything)
{
	const struct driver_table *const *table;
	const struct driver_method *method;
	size_t i;

	for (table = driver_tables; *table; table++) {
		for (i = 0; i < (*table)->n_methods; i++) {
			method = &(*table)->methods[i];
			if (strcmp(method->interface, interface) || !is_here(method, everything))
				continue;
			fprintf(out, "    <method name=\"%s\">\n", method->name);
			put_args(out, method->in, "direction=\"in\" ");
			put_args(out, method->out, "direction=\"out\" ");
			fprintf(out, "    </method>\n");
		}
	}
}

static void put_properties(FILE *out, const char *interface)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(properties); i++) {
		if (strcmp(properties[i].interface, interface))
			continue;
		fprintf(out,
			"    <property name=\"%s\" type=\"%s\" access=\"read\">\n"
			"      <annotation"
			" name=\"org.freedesktop.DBus.Property.EmitsChangedSignal\""
			" value=\"const\"/>\n    </property>\n",
			properties[i].name, properties[i].type);
	}
}

static void put_signals(FILE *out, const char *interface)
{
	const struct driver_table *const *table;
	const struct driver_signal *signal;
	size_t i;

	for (table = driver_tables; *table; table++) {
		for (i = 0; i < (*table)->n_signals; i++) {
			signal = &(*table)->signals[i];
			if (strcmp(signal->interface, interface))
				continue;
			fprintf(out, "    <signal name=\"%s\">\n", signal->name);
			put_args(out, signal->signature, "");
			fprintf(out, "    </signal>\n");
		}
	}
}

/* Is this method the first of its interface that is shown? */
static bool is_first(const struct driver_method *which, bool everything)
{
	const struct driver_table *const *table;
	const struct driver_method *method;
	size_t i;

	for (table = driver_tables; *table; table++) {
		for (i = 0; i < (*table)->n_methods; i++) {
			method = &(*table)->methods[i];
			if (is_here(method, everything) &&
			    !strcmp(method->interface, which->interface))
				return method == which;
		}
	}
	return false;
}

static void put_interfaces(FILE *out, bool everything)
{
	const struct driver_table *const *table;
	const struct driver_method *method;
	const struct driver_table *t;
	size_t i;

	for (table = driver_tables; (t = *table); table++) {
		for (i = 0; i < t->n_methods; i++) {
			method = &t->methods[i];
			if (!is_first(method, everything))
				continue;
			fprintf(out, "  <interface name=\"%s\">\n", method->interface);
			put_methods(out, method->interface, everything);
			if (everything)
				put_properties(out, method->interface);
			put_signals(out, method->interface);
			fprintf(out, "  </interface>\n");
		}
	}
}

char *driver_introspection(struct dbusp_str path)
{
	bool everything = dbusp_str_eq(path, DBUSP_STR(CLASSIC_DRIVER_PATH));
	char *xml = NULL;
	size_t size;
	FILE *out = open_memstream(&xml, &size);

	if (!out)
		return NULL;
	fputs(xml_start, out);
	put_interfaces(out, everything);
	if (dbusp_str_eq(path, DBUSP_STR("/")))
		fprintf(out, "  <node name=\"org/freedesktop/DBus\"/>\n");
	fprintf(out, "</node>\n");
	if (fclose(out) == 0)
		return xml;
	free(xml);
	return NULL;
}

static void introspect(struct driver_call *call)
{
	char *xml = driver_introspection(call->m->header.path);
	struct dbusp_build b;

	if (!xml) {
		driver_error(call->from, call->m, DBUS_ERROR("NoMemory"),
			     "Memory allocation failure");
		return;
	}
	driver_reply_begin(call, &b, "s");
	dbusp_put_string(&b, xml);
	driver_reply_end(call, &b);
	free(xml);
}

static const struct driver_method methods[] = {
	{ PROPERTIES, "Get", "ss", "v", 0, get },
	{ PROPERTIES, "GetAll", "s", "a{sv}", 0, get_all },
	{ PROPERTIES, "Set", "ssv", "", 0, set },
	{ "org.freedesktop.DBus.Introspectable", "Introspect", "", "s", DRIVER_ANY_PATH,
	  introspect },
};

static const struct driver_signal signals[] = {
	{ PROPERTIES, "PropertiesChanged", "sa{sv}as" },
};

const struct driver_table driver_properties = {
	.methods = methods,
	.n_methods = ARRAY_SIZE(methods),
	.signals = signals,
	.n_signals = ARRAY_SIZE(signals),
};
