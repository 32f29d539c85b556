// SPDX-License-Identifier: LGPL-2.1-or-later
/* Messages of a client's socket, and answers to its requests. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client.h"

static size_t pad8(size_t n)
{
	return ALIGN(n, (size_t)8);
}

/* More than this no library has on its way while descriptors of a record are awaited. */
#define POSTS_MAX LANE_DRAIN_MAX

/*
 * Kept until the channel is at rest: acting on it uses the channel again. More than one comes when
 * they stand in front of the descriptors of a record that is just taken.
 */
int client_message(struct lane_channel *ch, const void *data, size_t size, int *fds,
		   unsigned int n_fds)
{
	struct client *c = ch->user;
	struct post *post;
	unsigned int i;

	if (c->n_posts >= POSTS_MAX || size < sizeof(struct ctl_ask_intro))
		return -EPROTO;
	post = malloc(sizeof(*post) + pad8(size));
	if (!post)
		return -EPROTO;
	post->size = size;
	memcpy(post->data, data, size);
	memset((char *)post->data + size, 0, pad8(size) - size);
	for (i = 0; i < n_fds; i++) {
		post->fds[i] = fds[i];
		fds[i] = -1;
	}
	post->n_fds = n_fds;
	list_add_tail(&post->entry, &c->posts);
	c->n_posts++;
	return 0;
}

static void free_post(struct client *c, struct post *post)
{
	unsigned int i;

	if (!post)
		return;
	for (i = 0; i < post->n_fds; i++)
		reaper_close(c->daemon->reaper, post->fds[i]);
	free(post);
}

void client_free_posts(struct client *c)
{
	struct post *post, *next;

	list_for_each_entry_safe(post, next, &c->posts, entry)
		free_post(c, post);
	INIT_LIST_HEAD(&c->posts);
	c->n_posts = 0;
	free_post(c, c->deferred);
	c->deferred = NULL;
}

/* ---- answers ---- */

int answer_add(struct client *c, const void *data, size_t size)
{
	unsigned char *more = realloc(c->answer_extra, c->answer.extra_size + size + 8);

	if (!more)
		return -ENOMEM;
	memcpy(more + c->answer.extra_size, data, size);
	c->answer_extra = more;
	c->answer.extra_size += (u32)size;
	return 0;
}

/* At most those of a message, and one place is left for the memfd of a long answer. */
void answer_add_fd(struct client *c, int fd)
{
	BUG_ON(c->n_answer_fds >= LANE_SOCK_FDS_MAX - 1);
	c->answer_fds[c->n_answer_fds++] = fd;
}

void answer_add_own_fd(struct client *c, int fd)
{
	answer_add_fd(c, fd);
	c->answer_is_own = true;
}

/* What clients sent is closed by a thread (reaper.c), which costs more than what cannot block. */
void answer_clear(struct client *c)
{
	unsigned int i;

	for (i = 0; i < c->n_answer_fds; i++) {
		if (c->answer_is_own)
			close(c->answer_fds[i]);
		else
			reaper_close(c->daemon->reaper, c->answer_fds[i]);
	}
	c->n_answer_fds = 0;
	c->answer_is_own = false;
	free(c->answer_extra);
	free(c->answer_arg);
	c->answer_extra = NULL;
	c->answer_arg = NULL;
}

static int into_memfd(const void *data, size_t size)
{
	int fd = memfd_create("kdbus-answer", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -errno;
	if (write(fd, data, size) != (ssize_t)size ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0) {
		close(fd);
		return -EIO;
	}
	return fd;
}

/* A long answer goes in a memfd, in front of the other descriptors. */
static int shift_out(struct client *c)
{
	int fd = into_memfd(c->answer_extra, c->answer.extra_size);

	if (fd < 0)
		return fd;
	memmove(c->answer_fds + 1, c->answer_fds, c->n_answer_fds * sizeof(*c->answer_fds));
	c->answer_fds[0] = fd;
	c->n_answer_fds++;
	c->answer.flags |= CTL_REPLY_MEMFD;
	return 0;
}

static size_t fill_datagram(struct client *c, unsigned char *to)
{
	size_t arg = pad8(c->answer.arg_size);
	bool inlined = !(c->answer.flags & CTL_REPLY_MEMFD);

	memcpy(to, &c->answer, sizeof(c->answer));
	to += sizeof(c->answer);
	memset(to, 0, arg);
	memcpy(to, c->answer_arg, c->answer.arg_size);
	if (inlined && c->answer.extra_size)
		memcpy(to + arg, c->answer_extra, c->answer.extra_size);
	return sizeof(c->answer) + arg + (inlined ? c->answer.extra_size : 0);
}

/*
 * A client that does not read its socket has no request without an answer but this one, so there is
 * room for it, unless it lets doorbells pile up: then it goes.
 */
void answer_send(struct client *c)
{
	struct daemon *d = c->daemon;
	size_t size;
	int r = 0;

	if (!c->answering)
		return;
	c->answering = false;
	if (c->answer.extra_size > CTL_EXTRA_INLINE_MAX)
		r = shift_out(c);
	if (r == 0) {
		size = fill_datagram(c, d->datagram);
		r = d->lane_ops.send(&d->lane_ops, c->channel.sock, d->datagram, size,
				     c->answer_fds, c->n_answer_fds);
	}
	answer_clear(c);
	if (r == -EPIPE || r == -ECONNRESET)
		client_heat(c);
	else if (r < 0)
		client_expel(c, "it does not read its answers: %s", strerror(-r));
}

static int begin_answer(struct client *c, u32 serial, const void *arg, size_t arg_size)
{
	if (c->answering)
		return -EPROTO;
	c->answer = (struct ctl_reply){ .version = CTL_VERSION,
					.type = CTL_REPLY,
					.serial = serial,
					.arg_size = (u32)arg_size };
	c->answer_arg = malloc(pad8(arg_size) + 8);
	if (!c->answer_arg)
		return -ENOMEM;
	memcpy(c->answer_arg, arg, arg_size);
	return 0;
}

static void end_answer(struct client *c, int error)
{
	c->answer.error = error;
	c->answering = true;
	if (list_empty(&c->answer_entry))
		list_add_tail(&c->answer_entry, &c->daemon->answered);
}

/* ---- requests ---- */

/* The same order of checks as everywhere (ABI 3.2): the library has made them, but who knows. */
static int run_request(struct client *c, const struct ctl_request *request, void *arg,
		       const struct ctl_hello *hello)
{
	bool dead = c->handle == CORE_HANDLE_CONNECTED ? !c->connected : c->ep && c->ep->core->dead;
	struct core_args args;
	enum core_cmd cmd;
	u64 size;
	int r = core_cmd_lookup(request->nr, &cmd);

	if (r == 0)
		r = core_cmd_check_handle(cmd, c->handle, dead);
	if (r == 0 && c->handle == CORE_HANDLE_CONNECTED)
		r = core_cmd_check_kind(cmd, c->conn.kind);
	if (r < 0)
		return r;
	memcpy(&size, arg, sizeof(size));
	r = core_cmd_check_size(cmd, size);
	if (r == 0 && size != request->arg_size)
		r = -EINVAL;
	if (r == 0)
		r = core_cmd_parse(cmd, arg, request->arg_size, &args);
	if (r == 0 && args.negotiate)
		r = -EINVAL;
	return r < 0 ? r : command_run(c, cmd, arg, &args, hello);
}

static int request_parts(const struct client *c, void **ret_arg, struct ctl_hello **ret_hello)
{
	struct ctl_request *request = (struct ctl_request *)c->post->data;
	unsigned char *arg = (unsigned char *)(request + 1);
	size_t rest = c->post->size - sizeof(*request);

	if (c->post->size < sizeof(*request) || request->arg_size < sizeof(struct kdbus_cmd) ||
	    request->arg_size > CORE_CMD_MAX_SIZE || request->reserved)
		return -EPROTO;
	if (request->extra_size && request->extra_size != sizeof(**ret_hello))
		return -EPROTO;
	if (rest != pad8(request->arg_size) + request->extra_size)
		return -EPROTO;
	*ret_arg = arg;
	*ret_hello = request->extra_size ? (struct ctl_hello *)(arg + pad8(request->arg_size)) :
					   NULL;
	return 0;
}

static int act_request(struct client *c)
{
	const struct ctl_request *request = (const struct ctl_request *)c->post->data;
	struct ctl_hello *hello;
	void *arg;
	int r = request_parts(c, &arg, &hello);

	if (r == 0)
		r = begin_answer(c, request->serial, arg, request->arg_size);
	if (r < 0)
		return r;
	((struct kdbus_cmd *)c->answer_arg)->return_flags = 0;
	r = run_request(c, request, arg, hello);
	if (r == COMMAND_WAITS)
		answer_clear(c);
	else
		end_answer(c, r);
	return r == COMMAND_WAITS ? r : 0;
}

static int act_intro(struct client *c)
{
	if (c->post->size != sizeof(struct ctl_ask_intro) || c->post->n_fds != 1)
		return -EPROTO;
	return intro_ask(c, (const struct ctl_ask_intro *)c->post->data, &c->post->fds[0]);
}

static int act_end_intro(struct client *c)
{
	if (c->post->size != sizeof(struct ctl_end_intro) || c->post->n_fds)
		return -EPROTO;
	return intro_end(c, (const struct ctl_end_intro *)c->post->data);
}

static int act_hand_back(struct client *c)
{
	const struct ctl_hand_back *head = (const struct ctl_hand_back *)c->post->data;

	if (c->post->size < sizeof(*head))
		return -EPROTO;
	return death_handed_back(c, head, c->post->size - sizeof(*head));
}

static void act(struct client *c, struct post *post)
{
	const struct lane_sock *head = (const struct lane_sock *)post->data;
	int r = -EPROTO;

	c->post = post;
	if (head->version == CTL_VERSION && !c->doomed) {
		if (head->type == CTL_REQUEST)
			r = act_request(c);
		else if (head->type == CTL_ASK_INTRO)
			r = act_intro(c);
		else if (head->type == CTL_END_INTRO)
			r = act_end_intro(c);
		else if (head->type == CTL_HAND_BACK)
			r = act_hand_back(c);
		if (r < 0)
			client_expel(c, "it sent a malformed request");
	}
	c->post = NULL;
	if (r == COMMAND_WAITS)
		c->deferred = post;
	else
		free_post(c, post);
}

/* What it sent before it asked comes first, and that may have to wait while it is frozen. */
static void act_in_turn(struct client *c, struct post *post)
{
	if (((const struct lane_sock *)post->data)->type != CTL_REQUEST) {
		act(c, post);
		return;
	}
	if (c->deferred) {
		client_expel(c, "it sent a second request before the answer to the first");
		free_post(c, post);
		return;
	}
	client_take_all(c);
	if (client_frozen(c))
		c->deferred = post;
	else
		act(c, post);
}

/* Act on what client_message() kept. Returns whether there was anything. */
bool client_act(struct client *c)
{
	struct post *post = c->deferred;
	bool any = c->n_posts;

	if (post && !client_frozen(c) && list_empty(&c->asking_entry)) {
		c->deferred = NULL;
		act_in_turn(c, post);
		any = true;
	}
	while ((post = list_first_entry_or_null(&c->posts, struct post, entry)) && !c->doomed) {
		list_del_init(&post->entry);
		c->n_posts--;
		act_in_turn(c, post);
	}
	return any;
}
