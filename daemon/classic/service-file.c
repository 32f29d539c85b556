// SPDX-License-Identifier: LGPL-2.1-or-later
/* .service files: their format, and the set of names that they make activatable. */
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config.h"
#include "dbus/name.h"
#include "dbus/utf8.h"
#include "service-file.h"
#include "slurp.h"

#define FILE_MAX (1L << 20) /* bytes */
#define SECTION "D-BUS Service"
#define DRIVER "org.freedesktop.DBus"

/* ---- format ---- */

/* A file while it is read, line by line */
struct scan {
	struct service_file *file;
	bool in_section;
	bool seen_section;
	bool any_group;
	const char *reason;
	int result;
};

static bool refuse(struct scan *s, const char *reason)
{
	s->reason = reason;
	s->result = -EINVAL;
	return false;
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t';
}

static bool is_blank(const char *line, size_t len)
{
	while (len && is_space(line[len - 1]))
		len--;
	return !len;
}

static bool is_group_char(char c)
{
	return (unsigned char)c >= ' ' && (unsigned char)c < 127 && c != '[' && c != ']';
}

/* "[NAME]", with nothing before or after it. Of two groups with one name the first counts. */
static bool scan_group(struct scan *s, const char *line, size_t len)
{
	size_t i;

	if (len < 3 || line[len - 1] != ']')
		return refuse(s, "a group is not closed, or something follows it");
	for (i = 1; i < len - 1; i++)
		if (!is_group_char(line[i]))
			return refuse(s, "invalid character in the name of a group");
	s->any_group = true;
	s->in_section = !s->seen_section && len - 2 == strlen(SECTION) &&
			!memcmp(line + 1, SECTION, len - 2);
	s->seen_section |= s->in_section;
	return true;
}

static bool is_key_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-';
}

static char unescape(char c)
{
	switch (c) {
	case 's':
		return ' ';
	case 't':
		return '\t';
	case 'n':
		return '\n';
	case 'r':
		return '\r';
	case '\\':
		return '\\';
	default:
		return '\0';
	}
}

static bool copy_value(struct scan *s, const char *value, size_t len, char **ret)
{
	char *copy = malloc(len + 1), *p = copy;
	size_t i;

	if (!copy) {
		s->result = -ENOMEM;
		return false;
	}
	for (i = 0; i < len; i++) {
		*p = value[i];
		if (value[i] == '\\') {
			*p = i + 1 < len ? unescape(value[++i]) : '\0';
			if (!*p) {
				free(copy);
				return refuse(s, "invalid escape sequence");
			}
		}
		p++;
	}
	*p = '\0';
	*ret = copy;
	return true;
}

static char **field_of(struct service_file *file, const char *key, size_t len)
{
	const struct {
		const char *key;
		char **field;
	} fields[] = {
		{ "Name", &file->name },
		{ "Exec", &file->exec },
		{ "User", &file->user },
		{ "SystemdService", &file->systemd_service },
		{ "AssumedAppArmorLabel", &file->apparmor_label },
	};
	size_t i;

	for (i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (strlen(fields[i].key) == len && !memcmp(fields[i].key, key, len))
			return fields[i].field;
	return NULL;
}

/* Length of "[de]" behind a key, 0 if there is none; -EINVAL */
static int locale_len(const char *text, size_t len)
{
	size_t i;

	if (!len || *text != '[')
		return 0;
	for (i = 1; i < len && text[i] != ']'; i++)
		if (!is_group_char(text[i]))
			return -EINVAL;
	return i > 1 && i < len ? (int)i + 1 : -EINVAL;
}

/* "KEY=VALUE" or "KEY[LOCALE]=VALUE"; blanks around the sign are no part of either. */
static bool scan_pair(struct scan *s, const char *line, size_t len)
{
	size_t key = 0, i;
	char **field, *value;
	int locale;

	if (!s->any_group)
		return refuse(s, "a key before the first group");
	while (key < len && is_key_char(line[key]))
		key++;
	if (!key)
		return refuse(s, "neither a group, a key nor a comment");
	locale = locale_len(line + key, len - key);
	if (locale < 0)
		return refuse(s, "invalid locale behind a key");
	i = key + (size_t)locale;
	while (i < len && is_space(line[i]))
		i++;
	if (i == len || line[i] != '=')
		return refuse(s, "no = behind a key, or an invalid character in it");
	for (i++; i < len && is_space(line[i]); i++)
		;
	if (!copy_value(s, line + i, len - i, &value))
		return false;
	field = s->in_section && !locale ? field_of(s->file, line, key) : NULL;
	if (field && !*field)
		*field = value;
	else
		free(value);
	return true;
}

static bool scan_line(struct scan *s, const char *line, size_t len)
{
	if (is_blank(line, len) || *line == '#')
		return true;
	return *line == '[' ? scan_group(s, line, len) : scan_pair(s, line, len);
}

static size_t line_len(const char *text, size_t len)
{
	size_t i;

	for (i = 0; i < len && text[i] != '\n' && text[i] != '\r'; i++)
		;
	return i;
}

static const char *check_fields(const struct scan *s)
{
	const struct service_file *f = s->file;

	if (!s->seen_section)
		return "there is no group [" SECTION "]";
	if (!f->name)
		return "there is no Name";
	if (!dbusp_name_is_wellknown(f->name, strlen(f->name)))
		return "the Name is not a well-known bus name";
	if (!strcmp(f->name, DRIVER))
		return "the Name is that of the bus itself";
	return f->exec ? NULL : "there is no Exec";
}

int service_file_parse(const char *text, size_t len, struct service_file *ret,
		       unsigned int *ret_line, const char **ret_reason)
{
	struct service_file file = { NULL };
	struct scan s = { .file = &file };
	unsigned int line = 0;
	size_t at = 0;

	if ((len && memchr(text, '\0', len)) || !dbusp_utf8_valid(text, len))
		refuse(&s, "this is not UTF-8 text");
	while (at < len && s.result == 0) {
		size_t n = line_len(text + at, len - at);

		line++;
		scan_line(&s, text + at, n);
		at += n;
		if (at + 1 < len && text[at] == '\r' && text[at + 1] == '\n')
			at++;
		at++;
	}
	if (s.result == 0 && check_fields(&s)) {
		refuse(&s, check_fields(&s));
		line = 0;
	}
	if (s.result == 0) {
		*ret = file;
		return 0;
	}
	service_file_deinit(&file);
	*ret_line = line;
	*ret_reason = s.reason;
	return s.result;
}

void service_file_deinit(struct service_file *file)
{
	free(file->name);
	free(file->exec);
	free(file->user);
	free(file->systemd_service);
	free(file->apparmor_label);
	free(file->file);
}

/* ---- the set ---- */

/* Sorted by name */
struct services {
	struct service_file *files;
	size_t n;
};

/* A file that was found, with what decides between two of the same name */
struct found {
	struct service_file file;
	size_t dir;
	bool other_name; /* the file is not called after the name */
};

struct loading {
	struct found *found;
	size_t n;
	void (*warn)(void *arg, const char *text);
	void *arg;
};

static void warn(const struct loading *l, const char *path, unsigned int line, const char *reason)
{
	char *text;
	int n;

	if (!l->warn)
		return;
	if (line)
		n = asprintf(&text, "left out: %s:%u: %s", path, line, reason);
	else
		n = asprintf(&text, "left out: %s: %s", path, reason);
	if (n < 0)
		return;
	l->warn(l->arg, text);
	free(text);
}

static bool is_called_after(const char *file_name, const char *name)
{
	const size_t n = strlen(name);

	return !strncmp(file_name, name, n) && !strcmp(file_name + n, ".service");
}

static int keep(struct loading *l, struct service_file *file, size_t dir, bool other_name)
{
	struct found *more = reallocarray(l->found, l->n + 1, sizeof(*more));

	if (!more)
		return -ENOMEM;
	l->found = more;
	more[l->n++] = (struct found){ *file, dir, other_name };
	return 0;
}

/* Takes @path */
static int load_text(struct loading *l, const struct config_servicedir *dir, size_t n_dir,
		     char *path, const char *text, size_t len)
{
	const char *base = strrchr(path, '/') + 1, *reason;
	struct service_file file = { NULL };
	unsigned int line = 0;
	bool other_name;
	int r = service_file_parse(text, len, &file, &line, &reason);

	if (r < 0) {
		if (r == -EINVAL)
			warn(l, path, line, reason);
		free(path);
		return r == -EINVAL ? 0 : r;
	}
	assert(file.name);
	file.file = path;
	other_name = !is_called_after(base, file.name);
	if (other_name && dir->strict)
		warn(l, path, 0, "in this directory a file has to be called NAME.service");
	else
		r = keep(l, &file, n_dir, other_name);
	if (r < 0 || (other_name && dir->strict))
		service_file_deinit(&file);
	return r;
}

/* A pipe or device is no file, and could keep us waiting. */
static int read_text(const char *path, char **ret_text, size_t *ret_len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), r;
	struct stat st;

	if (fd < 0)
		return -errno;
	r = fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ? -EINVAL : 0;
	if (r == 0)
		r = slurp_fd(fd, FILE_MAX, ret_text, ret_len);
	close(fd);
	return r;
}

static int load_file(struct loading *l, const struct config_servicedir *dir, size_t n_dir,
		     const char *name)
{
	char *path, *text = NULL;
	size_t len = 0;
	int r;

	if (asprintf(&path, "%s/%s", dir->path, name) < 0)
		return -ENOMEM;
	r = read_text(path, &text, &len);
	if (r == 0) {
		r = load_text(l, dir, n_dir, path, text, len);
		free(text);
		return r;
	}
	if (r != -ENOMEM)
		warn(l, path, 0, strerror(-r));
	free(path);
	return r == -ENOMEM ? r : 0;
}

static int is_service(const struct dirent *entry)
{
	const size_t n = strlen(entry->d_name);

	return n > 8 && !strcmp(entry->d_name + n - 8, ".service");
}

static int by_file_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int load_dir(struct loading *l, const struct config_servicedir *dir, size_t n_dir)
{
	struct dirent **entries;
	int n = scandir(dir->path, &entries, is_service, by_file_name), i, r = 0;

	if (n < 0)
		return errno == ENOMEM ? -ENOMEM : 0;
	for (i = 0; i < n; i++) {
		if (r == 0)
			r = load_file(l, dir, n_dir, entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);
	return r;
}

/* The one that counts first (service-file.h, rule 2) */
static int compare_found(const void *x, const void *y)
{
	const struct found *a = x, *b = y;
	int order = strcmp(a->file.name, b->file.name);

	if (!order)
		order = a->dir < b->dir ? -1 : a->dir > b->dir;
	if (!order)
		order = (int)a->other_name - (int)b->other_name;
	return order ? order : strcmp(a->file.file, b->file.file);
}

static int make_set(struct loading *l, struct services **ret)
{
	struct services *s = calloc(1, sizeof(*s));
	size_t i;

	if (s)
		s->files = calloc(l->n + 1, sizeof(*s->files));
	if (!s || !s->files) {
		free(s);
		return -ENOMEM;
	}
	qsort(l->found, l->n, sizeof(*l->found), compare_found);
	for (i = 0; i < l->n; i++) {
		if (s->n && !strcmp(s->files[s->n - 1].name, l->found[i].file.name))
			service_file_deinit(&l->found[i].file);
		else
			s->files[s->n++] = l->found[i].file;
	}
	l->n = 0;
	*ret = s;
	return 0;
}

/* RUNTIME/dbus-1/services, which only has to have RUNTIME */
static void make_transient(const char *services)
{
	const char *suffix = "/dbus-1/services";
	const size_t n = strlen(services), m = strlen(suffix);
	struct stat st;
	char *path;

	if (n <= m || strcmp(services + n - m, suffix))
		return;
	path = strndup(services, n - m + strlen("/dbus-1"));
	if (!path)
		return;
	path[n - m] = '\0';
	if (stat(path, &st) == 0 && st.st_uid == geteuid()) {
		path[n - m] = '/';
		mkdir(path, 0700);
		mkdir(services, 0700);
	}
	free(path);
}

void services_make_transient(const struct config *config)
{
	size_t i;

	for (i = 0; i < config->n_servicedirs; i++)
		if (config->servicedirs[i].unwatched)
			make_transient(config->servicedirs[i].path);
}

int services_load(const struct config *config, void (*warn_fn)(void *arg, const char *text),
		  void *arg, struct services **ret)
{
	struct loading l = { .warn = warn_fn, .arg = arg };
	size_t i;
	int r = 0;

	for (i = 0; i < config->n_servicedirs && r == 0; i++)
		r = load_dir(&l, &config->servicedirs[i], i);
	if (r == 0 && l.n)
		r = make_set(&l, ret);
	else if (r == 0)
		*ret = calloc(1, sizeof(**ret));
	if (r == 0 && !*ret)
		r = -ENOMEM;
	for (i = 0; i < l.n; i++)
		service_file_deinit(&l.found[i].file);
	free(l.found);
	return r;
}

struct services *services_free(struct services *s)
{
	size_t i;

	if (!s)
		return NULL;
	for (i = 0; i < s->n; i++)
		service_file_deinit(&s->files[i]);
	free(s->files);
	free(s);
	return NULL;
}

const struct service_file *services_find(const struct services *s, const char *name)
{
	size_t low = 0, high = s->n;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		const int order = strcmp(name, s->files[middle].name);

		if (!order)
			return &s->files[middle];
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}

size_t services_count(const struct services *s)
{
	return s->n;
}

const struct service_file *services_nth(const struct services *s, size_t n)
{
	return &s->files[n];
}

bool services_same_names(const struct services *a, const struct services *b)
{
	size_t i;

	if (a->n != b->n)
		return false;
	for (i = 0; i < a->n; i++)
		if (strcmp(a->files[i].name, b->files[i].name))
			return false;
	return true;
}
