// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base.h"

#include "meta.h"
#include "names.h"

u64 core_meta_proc_granted(const struct core_meta_proc *facts)
{
	if (!facts->visible)
		return 0;
	if (facts->same || !facts->hidepid || facts->gid_exempt)
		return CORE_META_PROC;
	return 0;
}

static void put_caps(struct core_writer *w, const struct core_meta *meta)
{
	size_t size = CORE_CAP_SETS * core_cap_words(meta->last_cap) * sizeof(u32);
	char *at = core_writer_item(w, KDBUS_ITEM_CAPS, sizeof(meta->last_cap) + size);

	if (!at)
		return;
	memcpy(at, &meta->last_cap, sizeof(meta->last_cap));
	memcpy(at + sizeof(meta->last_cap), meta->caps, size);
}

static void put_names(struct core_writer *w, const struct core_name_holder *names)
{
	const struct core_name_record *record;

	list_for_each_entry(record, &names->records, holder_entry) {
		if (core_name_record_owns(record))
			core_put_name(w, record->flags, record->name->name);
	}
}

static void put_process(struct core_writer *w, const struct core_meta *meta, u64 mask)
{
	if (mask & KDBUS_ATTACH_CREDS)
		core_put(w, KDBUS_ITEM_CREDS, &meta->creds, sizeof(meta->creds));
	if (mask & KDBUS_ATTACH_PIDS)
		core_put(w, KDBUS_ITEM_PIDS, &meta->pids, sizeof(meta->pids));
	if (mask & KDBUS_ATTACH_AUXGROUPS)
		core_put(w, KDBUS_ITEM_AUXGROUPS, meta->auxgroups, meta->n_auxgroups * sizeof(u64));
	if (mask & KDBUS_ATTACH_TID_COMM)
		core_put_str(w, KDBUS_ITEM_TID_COMM, meta->tid_comm);
	if (mask & KDBUS_ATTACH_PID_COMM)
		core_put_str(w, KDBUS_ITEM_PID_COMM, meta->pid_comm);
	if (mask & KDBUS_ATTACH_EXE)
		core_put_str(w, KDBUS_ITEM_EXE, meta->exe);
	if (mask & KDBUS_ATTACH_CMDLINE)
		core_put(w, KDBUS_ITEM_CMDLINE, meta->cmdline, meta->cmdline_size);
	if (mask & KDBUS_ATTACH_CGROUP)
		core_put_str(w, KDBUS_ITEM_CGROUP, meta->cgroup);
	if (mask & KDBUS_ATTACH_CAPS)
		put_caps(w, meta);
	if (mask & KDBUS_ATTACH_SECLABEL)
		core_put_str(w, KDBUS_ITEM_SECLABEL, meta->seclabel);
	if (mask & KDBUS_ATTACH_AUDIT)
		core_put(w, KDBUS_ITEM_AUDIT, &meta->audit, sizeof(meta->audit));
}

void core_meta_put(struct core_writer *w, const struct core_meta *meta, u64 mask)
{
	mask &= meta->have;
	put_process(w, meta, mask);
	if ((mask & KDBUS_ATTACH_NAMES) && meta->names)
		put_names(w, meta->names);
	if (mask & KDBUS_ATTACH_CONN_DESCRIPTION)
		core_put_str(w, KDBUS_ITEM_CONN_DESCRIPTION, meta->description);
	if (mask & KDBUS_ATTACH_TIMESTAMP)
		core_put(w, KDBUS_ITEM_TIMESTAMP, &meta->timestamp, sizeof(meta->timestamp));
}

size_t core_meta_size(const struct core_meta *meta, u64 mask)
{
	struct core_writer counter = CORE_COUNTER;

	core_meta_put(&counter, meta, mask);
	return counter.pos;
}

static void fill_words(u32 *words, size_t n, u32 value)
{
	size_t i;

	for (i = 0; i < n; i++)
		words[i] = value;
}

void core_meta_caps(enum core_userns userns, bool is_owner, u32 last_cap, const u32 *caps,
		    u32 *ret_caps)
{
	size_t i, words = core_cap_words(last_cap);
	u32 last_word = (u32)~0 >> (31 - last_cap % 32);

	if (userns == CORE_USERNS_FOREIGN) {
		fill_words(ret_caps, CORE_CAP_SETS * words, 0);
	} else if (userns == CORE_USERNS_ANCESTOR && is_owner) {
		fill_words(ret_caps, words, 0);
		fill_words(ret_caps + words, (CORE_CAP_SETS - 1) * words, ~0U);
	} else {
		memmove(ret_caps, caps, CORE_CAP_SETS * words * sizeof(u32));
	}
	for (i = 1; i <= CORE_CAP_SETS; i++)
		ret_caps[i * words - 1] &= last_word;
}
