/* SPDX-License-Identifier: BSD-3-Clause
 *
 * process.c - FM's process-wide state: parameters, initialize, finalize, and errors. The default error handler explains
 * on standard error and exits; it alone in this library prints and exits. */
#include "api/fm/process.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "runnel/fm.h"

struct rnl_endpoint rnl_fm_nowhere;

static void explain(int status, const char *sentence)
{
    char who[32] = "", line[400];
    if (rnl_fm.rank >= 0)
        snprintf(who, sizeof who, "rank %lld: ", (long long)rnl_fm.rank);
    snprintf(line, sizeof line, "runnel: %s%s (%s)\n", who, sentence, rnl_status_name(status));
    if (rnl_iface_host)
        rnl_iface_host->say(line);
    else
        fputs(line, stderr);
}

_Noreturn static void end(void)
{
    if (rnl_iface_host)
        rnl_iface_host->exit(RNL_FM_EXIT_STATUS);
    exit(RNL_FM_EXIT_STATUS);
}

void rnl_fm_error(int status, unsigned long peer)
{
    const char *sentence = rnl_last_error()->text;
    if (rnl_fm.error) {
        if (rnl_fm.count)
            rnl_fm.count[RNL_FM_ERRORS]++;
        rnl_fm.error(status, peer, sentence);
        return;
    }
    int death = status == RNL_ERR_PEER_DEAD || status == RNL_ERR_PEER_BROKEN;
    int go_on = death && rnl_fm.ep && rnl_fm.ep->env->facts.keep_going;
    if (!go_on || !rnl_fm.quiet)
        explain(status, sentence);
    if (!go_on)
        end();
}

/* Calls the error handler for a peer's death, once for each peer. */
static void report_death(unsigned long peer, int status)
{
    struct rnl_endpoint *ep = rnl_fm.ep;
    if (peer >= ep->size || ep->peer[peer].reported)
        return;
    ep->peer[peer].reported = 1;
    rnl_fm_error(status, peer);
}

static void on_death(void *arg, unsigned peer, enum rnl_death_reason reason)
{
    struct rnl_endpoint *ep = rnl_fm.ep;
    (void)arg;
    (void)reason;
    if (!ep)
        return;
    if (!ep->close.closing)
        report_death(peer, rnl_ep_gone(ep, peer));
    else if (rnl_ep_unread(ep, peer)) /* else the peer had read everything, and its end while closing is no error */
        report_death(peer, rnl_ep_lost(ep, peer));
}

bool rnl_fm_send_failed(int status, unsigned long peer)
{
    if (status != RNL_ERR_PEER_DEAD && status != RNL_ERR_PEER_BROKEN) {
        rnl_fm_error(status, peer);
        return false;
    }
    report_death(peer, status);
    return true;
}

struct rnl_endpoint *rnl_fm_missing(const char *function)
{
    int status = rnl_fail(RNL_ERR_CLOSED,
                          "%s was called before FM_initialize or after FM_finalize: call it between the two", function);
    if (rnl_fm.error && !rnl_fm.missing) { /* the flag stops recursion if the handler calls FM, too */
        rnl_fm.missing = true;
        rnl_fm.error(status, FM_ANY_ID, rnl_last_error()->text);
    }
    explain(status, rnl_last_error()->text);
    end(); /* no endpoint can be returned */
}

static void too_late(const char *key)
{
    rnl_fm_error(rnl_fail(RNL_ERR_ARG, "%s must be set before FM_initialize", key), FM_ANY_ID);
}

bool rnl_fm_parameter(int key, va_list args)
{
    const char *text;
    int n;
    switch (key) {
    case FM_QUIET:
        rnl_fm.quiet = va_arg(args, int);
        return true;
    case FM_MAX_HANDLERS:
        n = va_arg(args, int);
        if (rnl_fm.ep)
            too_late("FM_MAX_HANDLERS");
        else if (n < 1 || n > 65536)
            rnl_fm_error(rnl_fail(RNL_ERR_ARG, "FM_MAX_HANDLERS is %d; it must be 1 to 65536", n), FM_ANY_ID);
        else
            rnl_fm.handlers = (unsigned)n;
        return true;
    case FM_GRM_NAME:
        (void)va_arg(args, const char *);
        return true;
    case FM_GRM_PORT:
    case FM_CM_PORT:
        (void)va_arg(args, int);
        return true;
    case FM_KEY_NAME:
        text = va_arg(args, const char *);
        if (rnl_fm.ep)
            too_late("FM_KEY_NAME");
        else
            snprintf(rnl_fm.name, sizeof rnl_fm.name, "%s", text ? text : "");
        return true;
    case FM_THREADS:
        n = va_arg(args, int);
        if (rnl_fm.ep)
            too_late("FM_THREADS");
        else
            rnl_fm.threads = n != 0;
        return true;
    case FM_ERROR_HANDLER:
        rnl_fm.error = va_arg(args, FM_error *);
        return true;
    default:
        return false;
    }
}

void rnl_fm_initialize(void)
{
    struct rnl_options opt = {
        .size = sizeof(struct rnl_options), .flags = rnl_fm.threads ? RNL_SHARED : 0, .handlers = rnl_fm.handlers};
    opt.name = rnl_fm.name[0] ? rnl_fm.name : NULL;
    if (rnl_fm.ep) {
        rnl_fm_error(rnl_fail(RNL_ERR_CONTEXT, "FM_initialize was called twice"), FM_ANY_ID);
        return;
    }
    struct rnl_endpoint *ep;
    int status = rnl_open(&ep, &opt);
    if (status < 0) {
        rnl_fm_error(status, FM_ANY_ID);
        return;
    }
    (void)rnl_iface_counters(&rnl_fm_iface, ep->c, &rnl_fm.count); /* a new endpoint has room */
    rnl_fm_be(ep);
    rnl_fm.missing = false;
    rnl_fm.rank = rnl_fm.ep->rank;
    rnl_fm.size = rnl_fm.ep->size;
    rnl_on_death(rnl_fm.ep, on_death, NULL);
}

void rnl_fm_finalize(void)
{
    struct rnl_endpoint *ep = rnl_fm_endpoint("FM_finalize");
    int status = rnl_close(ep);
    if (status == RNL_ERR_CONTEXT)
        (void)rnl_fail(status, "FM_finalize does not belong inside a handler: return from it first");
    if (status != RNL_ERR_CONTEXT && status != RNL_ERR_FORKED) {
        rnl_fm_be(NULL);
        rnl_fm.count = NULL;
    }
    if (status < 0)
        rnl_fm_error(status, FM_ANY_ID);
}

unsigned long rnl_fm_nodeid(void)
{
    if (rnl_fm.rank < 0)
        (void)rnl_fm_missing("FM_nodeid");
    return (unsigned long)rnl_fm.rank;
}

unsigned long rnl_fm_numnodes(void)
{
    if (rnl_fm.rank < 0)
        (void)rnl_fm_missing("FM_numnodes");
    return rnl_fm.size;
}

unsigned long rnl_fm_register(unsigned long id, const struct rnl_handler *h)
{
    struct rnl_endpoint *ep = rnl_fm_endpoint("FM_register_handler");
    int status = rnl_ep_enter(ep);
    if (status == 0) {
        if (!h->ctx)
            status = rnl_fail(RNL_ERR_ARG, "a handler must not be NULL");
        else
            status = rnl_stream_register(ep, id == FM_ANY_ID ? RNL_ANY_ID : id > INT_MAX ? INT_MAX : (int)id, h);
        rnl_ep_leave(ep);
    }
    if (status < 0) {
        rnl_fm_error(status, FM_ANY_ID);
        return FM_ANY_ID;
    }
    return (unsigned long)status;
}

int rnl_fm_wait(long timeout_us)
{
    int64_t bytes = rnl_wait(rnl_fm_endpoint("FM_wait"), timeout_us < 0 ? -1 : (int64_t)timeout_us * 1000);
    if (bytes < 0 && bytes != RNL_TIMED_OUT && bytes != RNL_INTERRUPTED)
        rnl_fm_error((int)bytes, FM_ANY_ID);
    return bytes < 0 ? 0 : bytes > INT_MAX ? INT_MAX : (int)bytes;
}
