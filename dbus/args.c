// SPDX-License-Identifier: LGPL-2.1-or-later
#include "dbus/args.h"

void dbusp_args_init(struct dbusp_args *args, const struct dbusp_header *header, const void *body)
{
	args->cursor = (struct dbusp_cursor){
		.data = body,
		.end = header->frame.body_len,
		.n_fds = header->n_fds,
		.big = header->frame.big,
	};
	args->pos = args->n = 0;
	if (dbusp_sig_parse(&args->map, header->signature.s, header->signature.len) < 0)
		args->map.len = 0;
}

static int take_arg(struct dbusp_args *args, struct dbusp_arg *ret)
{
	const char type = args->map.sig[args->pos];

	*ret = (struct dbusp_arg){ .type = type };
	if (dbusp_type_basic(type) && !dbusp_type_size(type))
		return dbusp_take_text(&args->cursor, type, &ret->text);
	return dbusp_take_value(&args->cursor, &args->map, args->pos, 0);
}

struct dbusp_arg dbusp_args_get(struct dbusp_args *args, unsigned int index)
{
	struct dbusp_arg arg;

	while (args->n <= index && args->n < DBUSP_ARGS_MAX && args->pos < args->map.len) {
		if (take_arg(args, &arg) < 0) {
			args->map.len = args->pos;
			break;
		}
		args->args[args->n++] = arg;
		args->pos += args->map.span[args->pos];
	}
	return index < args->n ? args->args[index] : (struct dbusp_arg){ .type = 0 };
}
