/* SPDX-License-Identifier: BSD-3-Clause
 *
 * findings.c - draws what follows from what was seen of hosts and of the paths between them (doctor.h). Pure. */
#include "launcher/doctor/doctor.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    IPV4_HEADERS = 28, /* of IP and UDP */
    IPV6_HEADERS = 48,
    LOST_PER_MILLE = 5, /* from so many on loss is felt */
    REORDERED_PER_MILLE = 10,
    FAR_MS = 5
};

/* ---- the list ---- */

struct rnl_finding *rnl_finding_add(struct rnl_findings *all, enum rnl_severity severity, const char *code,
                                    const char *host, const char *other, const char *format, ...)
{
    static struct rnl_finding nowhere; /* what is written there is lost, and `failed` says so */
    struct rnl_finding *more = realloc(all->at, (all->n + 1) * sizeof *more);
    va_list args;
    all->failed |= !more;
    all->at = more ? more : all->at;
    struct rnl_finding *f = more ? &more[all->n++] : &nowhere;
    *f = (struct rnl_finding){.severity = severity, .code = code, .host = host, .other = other};
    va_start(args, format);
    vsnprintf(f->text, sizeof f->text, format, args);
    va_end(args);
    return f;
}

void rnl_finding_remedy(struct rnl_finding *f, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(f->remedy, sizeof f->remedy, format, args);
    va_end(args);
}

void rnl_finding_contact(struct rnl_finding *f, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(f->ask, sizeof f->ask, format, args);
    va_end(args);
}

void rnl_findings_free(struct rnl_findings *all)
{
    free(all->at);
    *all = (struct rnl_findings){.at = NULL};
}

/* ---- paths ---- */

static void contact_network(struct rnl_finding *f)
{
    rnl_finding_contact(f, "who runs the network between %s and %s", f->host, f->other);
}

/* No address of the other works. The host that asked knows what it saw; the other one, whether it was heard. */
static void unreachable(const struct rnl_doctor_host *from, const struct rnl_doctor_host *to, uint32_t at,
                        const struct rnl_path_report *back, struct rnl_findings *out)
{
    const struct rnl_probe_failure *seen = &from->path[at].attempts;
    const bool heard = back->attempts.heard != 0;
    char text[600], remedy[200], ask[200];
    unsigned told = 0;
    for (uint32_t k = 0; k < seen->addresses; k++) {
        const struct rnl_probe_attempt *w = &seen->address[k];
        if (rnl_is_loopback(w->ip))
            continue;
        rnl_probe_describe(&to->info, w, heard, from->name, to->name, text, sizeof text);
        const char *code = rnl_probe_remedy(w, heard, from->name, to->name, remedy, ask, sizeof remedy);
        struct rnl_finding *f = rnl_finding_add(out, RNL_FINDING_STOPS, code, from->name, to->name, "%s", text);
        rnl_finding_remedy(f, "%s", remedy);
        rnl_finding_contact(f, "%s", ask);
        told++;
    }
    if (told > 0)
        return;
    rnl_probe_describe(&to->info, NULL, heard, from->name, to->name, text, sizeof text);
    struct rnl_finding *f = rnl_finding_add(out, RNL_FINDING_STOPS, "no address", from->name, to->name, "%s", text);
    rnl_finding_remedy(f, "bring an interface of %s up, and give it an address (ip link set DEVICE up; ip addr add)",
                       to->name);
    rnl_finding_contact(f, "the administrator of %s", to->name);
}

/* Addresses that lead nowhere although another one works: they are left out, and that is all. */
static void dead_addresses(const struct rnl_doctor_host *from, const struct rnl_doctor_host *to, uint32_t at,
                           struct rnl_findings *out)
{
    const struct rnl_probe_failure *seen = &from->path[at].attempts;
    char text[600], remedy[200], ask[200];
    for (uint32_t k = 0; k < seen->addresses && seen->asked; k++) {
        const struct rnl_probe_attempt *w = &seen->address[k];
        if (w->works || rnl_is_loopback(w->ip) || memcmp(w->ip, from->path[at].ip, sizeof w->ip) == 0)
            continue;
        rnl_probe_describe(&to->info, w, false, from->name, to->name, text, sizeof text);
        (void)rnl_probe_remedy(w, false, from->name, to->name, remedy, ask, sizeof remedy);
        struct rnl_finding *f = rnl_finding_add(out, RNL_FINDING_NOTE, "dead address", from->name, to->name,
                                                "%s. Another address works", text);
        rnl_finding_remedy(f, "none is needed; if it should work: %s", remedy);
        rnl_finding_contact(f, "%s", ask);
    }
}

static void lossy(const struct rnl_doctor_host *from, const struct rnl_doctor_host *to, const struct rnl_path_result *r,
                  struct rnl_findings *out)
{
    const uint32_t lost = r->sent - r->counts.came;
    if (lost > 0) {
        const bool felt = (uint64_t)lost * 1000 >= (uint64_t)r->sent * LOST_PER_MILLE;
        struct rnl_finding *f = rnl_finding_add(
            out, felt ? RNL_FINDING_HINDERS : RNL_FINDING_NOTE, "loss", from->name, to->name,
            "%u of %u datagrams from %s to %s were lost (%.1f %%); Runnel repeats them, which takes time", lost,
            r->sent, from->name, to->name, 100.0 * lost / r->sent);
        rnl_finding_remedy(
            f, "look for errors and drops of both interfaces (ip -s link, ethtool -S DEVICE), for a bad cable, "
               "a full queue of a switch, or a rule that drops (nft list ruleset, tc -s qdisc)");
        contact_network(f);
    }
    if (r->counts.reordered > 0) {
        const bool felt = (uint64_t)r->counts.reordered * 1000 >= (uint64_t)r->sent * REORDERED_PER_MILLE;
        struct rnl_finding *f =
            rnl_finding_add(out, felt ? RNL_FINDING_HINDERS : RNL_FINDING_NOTE, "reorder", from->name, to->name,
                            "%u of %u datagrams from %s to %s were overtaken by later ones", r->counts.reordered,
                            r->sent, from->name, to->name);
        rnl_finding_remedy(
            f, "let one path carry all datagrams of a flow: bonds and routes that deal them out in turn do this "
               "(balance-rr; a hash of addresses and ports does not)");
        contact_network(f);
    }
    if (r->counts.repeated > 0) {
        struct rnl_finding *f =
            rnl_finding_add(out, RNL_FINDING_NOTE, "repeat", from->name, to->name,
                            "%u datagrams from %s to %s arrived twice", r->counts.repeated, from->name, to->name);
        rnl_finding_remedy(f, "look for a loop of bridges, or a port that mirrors others");
        contact_network(f);
    }
}

static void narrow(const struct rnl_doctor_host *from, const struct rnl_doctor_host *to,
                   const struct rnl_path_report *p, struct rnl_findings *out)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    const uint32_t head = memcmp(p->ip, mapped, sizeof mapped) == 0 ? IPV4_HEADERS : IPV6_HEADERS;
    const uint32_t passes = p->result.passes + head, takes = p->result.takes + head;
    if (p->result.takes <= p->result.passes)
        return;
    struct rnl_finding *f = rnl_finding_add(out, RNL_FINDING_HINDERS, "mtu", from->name, to->name,
                                            "packets of more than %u bytes from %s to %s are lost on their way, "
                                            "without a word, although the interface of %s "
                                            "takes %u; Runnel finds that out by itself, and has to send more packets",
                                            passes, from->name, to->name, from->name, takes);
    rnl_finding_remedy(
        f, "give all that lies between an MTU of %u, or both interfaces one of %u (ip link set DEVICE mtu %u)", takes,
        passes, passes);
    contact_network(f);
}

static void timing(const struct rnl_doctor_host *from, const struct rnl_doctor_host *to,
                   const struct rnl_path_result *r, struct rnl_findings *out)
{
    if (r->least_ns < FAR_MS * UINT64_C(1000000))
        return;
    struct rnl_finding *f = rnl_finding_add(
        out, RNL_FINDING_NOTE, "far", from->name, to->name,
        "a datagram from %s to %s and back takes %.1f ms at the least: these hosts are far apart, or something between "
        "them delays",
        from->name, to->name, (double)r->least_ns / 1e6);
    rnl_finding_remedy(f,
                       "run ranks that talk much on hosts of one switch; look for queues that are full (tc -s qdisc)");
    contact_network(f);
}

static void path(const struct rnl_doctor_report *report, uint32_t a, uint32_t b, struct rnl_findings *out)
{
    const struct rnl_doctor_host *from = &report->host[a], *to = &report->host[b];
    const struct rnl_path_report *p = &from->path[b], *back = &to->path[a];
    if (!from->has_paths || !to->answered || to->info.addresses == 0)
        return; /* it was said of the host */
    if (!p->agreed) {
        if (p->attempts.asked)
            unreachable(from, to, b, back, out);
        return;
    }
    dead_addresses(from, to, b, out);
    if (!p->result.done) {
        struct rnl_finding *f = rnl_finding_add(
            out, RNL_FINDING_HINDERS, "unsteady", from->name, to->name,
            "%s reached %s at first; of %u datagrams that followed at least %u arrived, and then nothing came back",
            from->name, to->name, p->result.sent, p->result.counts.came);
        rnl_finding_remedy(f,
                           "look for a limit of packets a second (nft list ruleset: limit, meter), for a host that is "
                           "stopped or overloaded, and for routes that change");
        contact_network(f);
        return;
    }
    lossy(from, to, &p->result, out);
    narrow(from, to, p, out);
    timing(from, to, &p->result, out);
}

/* ---- hosts ---- */

static void absent(const struct rnl_doctor_host *h, struct rnl_findings *out)
{
    struct rnl_finding *f = rnl_finding_add(out, RNL_FINDING_STOPS, h->other_release ? "version" : "agent", h->name,
                                            NULL, "host %s: %s", h->name, h->why);
    if (h->other_release)
        rnl_finding_remedy(f, "install one release of Runnel on all hosts, or say with --agent where the one is");
    else if (h->answered)
        rnl_finding_remedy(f, "mend what it says, and examine this host by itself: runnel doctor, there");
    else
        rnl_finding_remedy(
            f,
            "`ssh %s true` has to work without a password, and the runnel command has to be there, where "
            "it is here or where --agent says",
            h->name);
    rnl_finding_contact(f, "the administrator of %s", h->name);
}

static int worse_first(const void *a, const void *b)
{
    const struct rnl_finding *x = a, *y = b;
    if (x->severity != y->severity)
        return x->severity > y->severity ? -1 : 1;
    return strcmp(x->text, y->text);
}

void rnl_findings_draw(const struct rnl_doctor_report *report, struct rnl_findings *out)
{
    *out = (struct rnl_findings){.at = NULL};
    for (uint32_t a = 0; a < report->hosts; a++) {
        const struct rnl_doctor_host *h = &report->host[a];
        if (h->why[0] != '\0')
            absent(h, out);
        if (h->has_facts)
            rnl_findings_of_host(report, h, out);
        for (uint32_t b = 0; b < report->hosts; b++)
            if (a != b)
                path(report, a, b, out);
    }
    if (out->n > 0)
        qsort(out->at, out->n, sizeof *out->at, worse_first);
}
