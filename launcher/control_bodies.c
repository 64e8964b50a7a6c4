/* SPDX-License-Identifier: BSD-3-Clause
 *
 * control_bodies.c - the bodies of frames of the control protocol: see control.h. Whatever arrives is copied out of the
 * frame and checked before it is used. */
#include "launcher/control.h"

#include "base/error.h"
#include "base/secret.h"
#include "runnel/runnel.h"

#include <stdlib.h>
#include <string.h>

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "bodies are sent as they lie in memory");
enum { TEXTS_MAX = 1 << 20 };

static int garbled(const char *what)
{
    return rnl_fail(RNL_ERR_JOB, "%s that came from another host is not understood: use one release everywhere", what);
}

void rnl_pack_bytes(struct rnl_pack *p, const void *at, size_t n)
{
    if (!p->failed && n > 0) /* JOB has the keys of the job */
        p->failed = !rnl_secret_grow(&p->at, &p->room, p->bytes, p->bytes + n);
    if (p->failed || n == 0)
        return;
    memcpy(p->at + p->bytes, at, n);
    p->bytes += n;
}

void rnl_pack_free(struct rnl_pack *p)
{
    rnl_secret_free(p->at, p->room);
    *p = (struct rnl_pack){.at = NULL};
}

void rnl_unpack_bytes(struct rnl_unpack *u, void *at, size_t n)
{
    u->bad |= n > u->left;
    if (u->bad) {
        memset(at, 0, n);
        return;
    }
    if (n > 0)
        memcpy(at, u->at, n);
    u->at += n;
    u->left -= n;
}

uint32_t rnl_unpack_32(struct rnl_unpack *u)
{
    uint32_t value;
    rnl_unpack_bytes(u, &value, sizeof value);
    return value;
}

/* ---- JOB ---- */

static uint32_t pack_texts(struct rnl_pack *p, char *const *text)
{
    uint32_t n = 0;
    for (; text[n]; n++)
        rnl_pack_bytes(p, text[n], strlen(text[n]) + 1);
    return n;
}

void rnl_job_spec_pack(struct rnl_pack *p, struct rnl_job_spec *s)
{
    struct rnl_pack texts = {.at = NULL};
    rnl_pack_bytes(&texts, s->folder, strlen(s->folder) + 1);
    s->arguments = pack_texts(&texts, s->argv);
    s->variables = pack_texts(&texts, s->environment);
    rnl_pack_bytes(p, s, offsetof(struct rnl_job_spec, at));
    rnl_pack_bytes(p, s->at, s->hosts * sizeof *s->at);
    rnl_pack_bytes(p, texts.at, texts.bytes);
    p->failed |= texts.failed;
    rnl_pack_free(&texts);
}

/* The hosts' blocks of ranks follow each other and are the whole job. */
static bool are_hosts(const struct rnl_job_spec *s)
{
    uint32_t next = 0;
    for (uint32_t i = 0; i < s->hosts; i++) {
        const struct rnl_job_host *h = &s->at[i];
        if (!memchr(h->name, '\0', sizeof h->name) || h->first != next || h->count == 0 || h->count > s->size - next)
            return false;
        next += h->count;
    }
    return next == s->size;
}

/* Returns the next text, or NULL when there is none. */
static char *next_text(struct rnl_unpack *u, char **at)
{
    char *text = *at, *end = u->left > 0 ? memchr(text, '\0', u->left) : NULL;
    if (!end)
        return NULL;
    u->left -= (size_t)(end + 1 - text);
    *at = end + 1;
    return text;
}

/* The texts are copied once, behind the array of those that point to them. */
static bool unpack_texts(struct rnl_unpack *u, struct rnl_job_spec *s)
{
    const size_t pointers = (size_t)s->arguments + s->variables + 2;
    s->argv = malloc(pointers * sizeof *s->argv + u->left);
    if (!s->argv)
        return false;
    char *at = (char *)(s->argv + pointers);
    memcpy(at, u->at, u->left);
    s->environment = s->argv + s->arguments + 1;
    s->folder = next_text(u, &at);
    bool good = s->folder != NULL;
    for (uint32_t i = 0; i < s->arguments && good; i++)
        good = (s->argv[i] = next_text(u, &at)) != NULL;
    for (uint32_t i = 0; i < s->variables && good; i++)
        good = (s->environment[i] = next_text(u, &at)) != NULL;
    s->argv[s->arguments] = s->environment[s->variables] = NULL;
    return good && u->left == 0;
}

int rnl_job_spec_unpack(const void *body, size_t bytes, struct rnl_job_spec *out)
{
    struct rnl_unpack u = {.at = body, .left = bytes};
    memset(out, 0, sizeof *out);
    rnl_unpack_bytes(&u, out, offsetof(struct rnl_job_spec, at));
    if (u.bad || out->size == 0 || out->size > RNL_JOB_RANKS_MAX || out->hosts == 0 || out->hosts > RNL_HOSTS_MAX ||
        out->host >= out->hosts || (out->flags & ~(uint32_t)RNL_JOB_FLAGS) != 0 || out->arguments == 0 ||
        out->arguments > TEXTS_MAX || out->variables > TEXTS_MAX)
        return garbled("a job");
    out->at = calloc(out->hosts, sizeof *out->at);
    if (!out->at)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for the names of %u hosts", out->hosts);
    rnl_unpack_bytes(&u, out->at, out->hosts * sizeof *out->at);
    if (!u.bad && are_hosts(out) && unpack_texts(&u, out))
        return 0;
    rnl_job_spec_free(out);
    return garbled("a job");
}

void rnl_job_spec_free(struct rnl_job_spec *s)
{
    free(s->at);
    free(s->argv);
    explicit_bzero(s, sizeof *s);
}

/* ---- HERE and HOSTS ---- */

void rnl_host_info_pack(struct rnl_pack *p, const struct rnl_host_info *h)
{
    rnl_pack_bytes(p, h, offsetof(struct rnl_host_info, address));
    rnl_pack_bytes(p, h->address, h->addresses * sizeof h->address[0]);
    rnl_pack_bytes(p, h->port, h->ranks * sizeof h->port[0]);
}

int rnl_host_info_unpack(struct rnl_unpack *u, uint32_t hosts, const struct rnl_job_host *at, struct rnl_host_info *out)
{
    static const char what[] = "the address of a host";
    memset(out, 0, sizeof *out);
    rnl_unpack_bytes(u, out, offsetof(struct rnl_host_info, address));
    if (u->bad || out->host >= hosts || out->probe_port == 0 || out->addresses > RNL_HOST_ADDRESSES_MAX ||
        out->ranks > RNL_JOB_RANKS_MAX || out->ranks != at[out->host].count)
        return garbled(what);
    rnl_unpack_bytes(u, out->address, out->addresses * sizeof out->address[0]);
    for (uint32_t i = 0; i < out->addresses; i++)
        out->address[i].interface[sizeof out->address[i].interface - 1] = '\0';
    rnl_unpack_bytes(u, out->port, out->ranks * sizeof out->port[0]);
    for (uint32_t i = 0; i < out->ranks; i++)
        u->bad |= out->port[i] == 0;
    return u->bad ? garbled(what) : 0;
}

/* ---- PROBED ---- */

void rnl_probe_failure_pack(struct rnl_pack *p, const struct rnl_probe_failure *f)
{
    rnl_pack_bytes(p, f, offsetof(struct rnl_probe_failure, address));
    rnl_pack_bytes(p, f->address, f->addresses * sizeof f->address[0]);
}

int rnl_probe_failure_unpack(struct rnl_unpack *u, uint32_t hosts, struct rnl_probe_failure *out)
{
    memset(out, 0, sizeof *out);
    rnl_unpack_bytes(u, out, offsetof(struct rnl_probe_failure, address));
    u->bad |= out->other >= hosts || out->heard > 1 || out->asked > 1 || out->addresses > RNL_HOST_ADDRESSES_MAX;
    if (!u->bad)
        rnl_unpack_bytes(u, out->address, out->addresses * sizeof out->address[0]);
    for (uint32_t i = 0; i < out->addresses && !u->bad; i++)
        u->bad |= out->address[i].sys_errno < 0;
    return u->bad ? garbled("the result of a host's probes") : 0;
}

/* ---- PATHS ---- */

void rnl_path_report_pack(struct rnl_pack *p, const struct rnl_path_report *r)
{
    rnl_pack_bytes(p, r, offsetof(struct rnl_path_report, attempts));
    rnl_probe_failure_pack(p, &r->attempts);
}

int rnl_path_report_unpack(struct rnl_unpack *u, uint32_t hosts, struct rnl_path_report *out)
{
    const struct rnl_path_result *r = &out->result;
    memset(out, 0, sizeof *out);
    rnl_unpack_bytes(u, out, offsetof(struct rnl_path_report, attempts));
    u->bad |= out->agreed > 1 || r->done > 1 || r->sent > RNL_PATH_TRAIN_MOST || r->counts.came > r->sent ||
              r->counts.reordered > r->counts.came || r->echoes > r->sent;
    return u->bad ? garbled("the result of a host's measurements") : rnl_probe_failure_unpack(u, hosts, &out->attempts);
}

/* ---- ARRIVALS ---- */

void rnl_arrivals_pack(struct rnl_pack *p, const struct rnl_arrivals *a)
{
    rnl_pack_bytes(p, a, offsetof(struct rnl_arrivals, wanted));
    rnl_pack_bytes(p, a->wanted, a->count * sizeof a->wanted[0]);
}

int rnl_arrivals_unpack(struct rnl_unpack *u, struct rnl_arrivals *out)
{
    memset(out, 0, sizeof *out);
    rnl_unpack_bytes(u, out, offsetof(struct rnl_arrivals, wanted));
    out->name[sizeof out->name - 1] = '\0';
    u->bad |= out->count > RNL_JOB_RANKS_MAX;
    if (!u->bad)
        rnl_unpack_bytes(u, out->wanted, out->count * sizeof out->wanted[0]);
    return u->bad ? garbled("who waits on a host") : 0;
}
