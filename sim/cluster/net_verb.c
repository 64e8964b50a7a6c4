/* SPDX-License-Identifier: BSD-3-Clause
 *
 * net_verb.c - what a scenario can say about the network. Each verb looks at all of its arguments before it does
 * anything, so a line that is wrong changes nothing. */
#include <stdlib.h>
#include <string.h>

#include "sim/cluster/net_internal.h"

/* ---- quantities ---- */

struct unit {
    const char *name;
    uint64_t worth; /* of what the quantity is counted in; 1000000000 at most, or a multiple of that */
};

/* Digits, perhaps with a fraction, and a unit: a whole number of what is counted. */
static bool read_quantity(const char *text, const struct unit *units, uint64_t *out)
{
    uint64_t whole = 0, part = 0, place = 1000000000;
    const char *at = text;
    if (*at < '0' || *at > '9')
        return false;
    for (; *at >= '0' && *at <= '9'; at++) {
        if (whole > UINT64_MAX / 10 - 1)
            return false;
        whole = whole * 10 + (uint64_t)(*at - '0');
    }
    if (*at == '.') {
        if (*++at < '0' || *at > '9')
            return false;
        for (; *at >= '0' && *at <= '9' && place > 1; at++) {
            place /= 10;
            part += place * (uint64_t)(*at - '0');
        }
    }
    for (const struct unit *u = units; u->name; u++) {
        if (strcmp(at, u->name) != 0)
            continue;
        if (whole > UINT64_MAX / u->worth / 2)
            return false;
        uint64_t left = u->worth >= 1000000000 ? part * (u->worth / 1000000000) : part * u->worth;
        if (u->worth < 1000000000) {
            if (left % 1000000000)
                return false;
            left /= 1000000000;
        }
        *out = whole * u->worth + left;
        return true;
    }
    return false;
}

static const struct unit rates[] = {{"b/s", 1},           {"kb/s", 1000},          {"Mb/s", 1000000},
                                    {"Gb/s", 1000000000}, {"Tb/s", 1000000000000}, {NULL, 0}};
static const struct unit times[] = {{"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}, {NULL, 0}};
static const struct unit sizes[] = {{"", 1},         {"B", 1},         {"kB", 1000},       {"KiB", 1024},
                                    {"MB", 1000000}, {"MiB", 1048576}, {"GB", 1000000000}, {NULL, 0}};

static const struct unit counts[] = {{"", 1}, {NULL, 0}};

/* ---- nodes, links, hosts ---- */

static bool read_number(const char **at, uint32_t *out)
{
    uint64_t n = 0;
    if (**at < '0' || **at > '9')
        return false;
    for (; **at >= '0' && **at <= '9'; ++*at)
        if ((n = n * 10 + (uint64_t)(**at - '0')) > UINT32_MAX - 1)
            return false;
    *out = (uint32_t)n;
    return true;
}

static bool read_node(const struct vc_net *net, const char **at, uint32_t *out)
{
    uint32_t n, is_switch = **at == 's';
    *at += is_switch;
    if (!read_number(at, &n))
        return false;
    if (n >= (is_switch ? net->nodes - net->hosts : net->hosts))
        return false;
    *out = is_switch ? net->hosts + n : n;
    return true;
}

enum { ANY = 1, BOTH = 2, ONE_WAY = 4 };
struct links {
    int which;
    uint32_t a, b;
};

static bool is_of(const struct links *w, const struct net_link *l)
{
    if (w->which == ANY)
        return true;
    if (w->which == (ANY | BOTH))
        return l->from == w->a || l->to == w->a;
    return (l->from == w->a && l->to == w->b) || (w->which == BOTH && l->from == w->b && l->to == w->a);
}

static int read_links(const struct vc_net *net, const char *text, struct links *w)
{
    const char *at = text;
    memset(w, 0, sizeof *w);
    if (strcmp(text, "all") == 0) {
        w->which = ANY;
    } else {
        if (!read_node(net, &at, &w->a))
            goto wrong;
        w->which = *at == ':' ? BOTH : *at == '>' ? ONE_WAY : ANY | BOTH;
        if (*at && (w->which == (ANY | BOTH) || (at++, !read_node(net, &at, &w->b)) || *at))
            goto wrong;
    }
    for (uint32_t i = 0; i < net->links; i++)
        if (is_of(w, net->link[i]))
            return 0;
    return rnl_fail(RNL_ERR_ARG, "'%s' names no link that there is", text);
wrong:
    return rnl_fail(RNL_ERR_ARG,
                    "'%s' names no links: all, NODE, NODE:NODE or NODE>NODE, where NODE is 0 to %u for a host, "
                    "or s0 and on for one of %u switches",
                    text, net->hosts - 1, net->nodes - net->hosts);
}

static int no_node(const struct vc_net *net, const char *text)
{
    return rnl_fail(RNL_ERR_ARG, "'%s' names no node: 0 to %u are hosts, s0 and on %u switches", text, net->hosts - 1,
                    net->nodes - net->hosts);
}

static int read_hosts(const struct vc_net *net, const char *text, struct rnl_fault_ranks *r)
{
    const char *at = text;
    memset(r, 0, sizeof *r);
    if (strcmp(text, "all") == 0) {
        r->count = 1;
        r->range[0].last = net->hosts - 1;
        return 0;
    }
    for (;; at++) {
        uint32_t first, last;
        if (r->count == RNL_FAULT_RANGES || !read_number(&at, &first))
            break;
        last = first;
        if (*at == '-' && (at++, !read_number(&at, &last)))
            break;
        if (last < first || last >= net->hosts)
            break;
        r->range[r->count].first = first;
        r->range[r->count++].last = last;
        if (*at == '\0')
            return 0;
        if (*at != '+')
            break;
    }
    return rnl_fail(RNL_ERR_ARG, "'%s' names no hosts: all, or up to %d numbers and ranges up to %u, like 0-3+7", text,
                    RNL_FAULT_RANGES, net->hosts - 1);
}

/* ---- verbs about links ---- */

/* A new configuration for each of the links. */
static int change(struct vc_net *net, const char *links, size_t field, uint64_t value)
{
    struct links w;
    int status = read_links(net, links, &w);
    for (uint32_t i = 0; i < net->links && status == 0; i++) {
        struct vc_net_link_config c = net->link[i]->config;
        if (!is_of(&w, net->link[i]))
            continue;
        memcpy((char *)&c + field, &value, sizeof value);
        vc_net_link_set(net, i, &c);
    }
    return status;
}

static int quantity(const char *verb, const char *text, const struct unit *units, const char *none, const char *form,
                    uint64_t *out)
{
    if (strcmp(text, none) == 0) {
        *out = 0;
        return 0;
    }
    if (read_quantity(text, units, out))
        return 0;
    return rnl_fail(RNL_ERR_ARG, "%s '%s': it takes %s, or %s", verb, text, form, none);
}

static int verb_rate(struct vc_net *net, int n, const char *const *a)
{
    uint64_t value;
    int status = quantity("rate", a[1], rates, "none", "a rate like 10Gb/s or 2.5Mb/s", &value);
    (void)n;
    return status < 0 ? status : change(net, a[0], offsetof(struct vc_net_link_config, bits_per_s), value);
}

static int verb_delay(struct vc_net *net, int n, const char *const *a)
{
    uint64_t value;
    int status = quantity("delay", a[1], times, "none", "a time like 5us", &value);
    (void)n;
    return status < 0 ? status : change(net, a[0], offsetof(struct vc_net_link_config, delay_ns), value);
}

static int verb_buffer(struct vc_net *net, int n, const char *const *a)
{
    uint64_t value;
    int status = quantity("buffer", a[1], sizes, "unbounded", "a size like 192kB or 64KiB", &value);
    (void)n;
    return status < 0 ? status : change(net, a[0], offsetof(struct vc_net_link_config, buffer_bytes), value);
}

static int verb_burst(struct vc_net *net, int n, const char *const *a)
{
    uint64_t value;
    int status = quantity("burst", a[1], sizes, "none", "a size like 3200B or 32kB", &value);
    (void)n;
    return status < 0 ? status : change(net, a[0], offsetof(struct vc_net_link_config, burst_bytes), value);
}

static int verb_mark(struct vc_net *net, int n, const char *const *a)
{
    uint64_t value;
    int status = quantity("mark", a[1], sizes, "never", "a size like 30kB", &value);
    (void)n;
    return status < 0 ? status : change(net, a[0], offsetof(struct vc_net_link_config, mark_bytes), value);
}

static int verb_mtu(struct vc_net *net, int n, const char *const *a)
{
    struct links w;
    uint64_t mtu;
    int status = read_links(net, a[0], &w);
    if (status < 0)
        return status;
    if (!read_quantity(a[1], sizes, &mtu) || mtu < 68 || mtu > 65535)
        return rnl_fail(RNL_ERR_ARG, "mtu '%s': it takes 68 to 65535 bytes, IP headers included", a[1]);
    if (n > 2 && strcmp(a[2], "silent") != 0)
        return rnl_fail(RNL_ERR_ARG, "mtu: '%s', where only silent can stand", a[2]);
    for (uint32_t i = 0; i < net->links; i++) {
        struct vc_net_link_config c = net->link[i]->config;
        if (!is_of(&w, net->link[i]))
            continue;
        c.mtu = (uint32_t)mtu;
        c.silent = n > 2;
        vc_net_link_set(net, i, &c);
    }
    return 0;
}

static int set_up(struct vc_net *net, const char *links, int up)
{
    struct links w;
    int status = read_links(net, links, &w);
    for (uint32_t i = 0; i < net->links && status == 0; i++)
        if (is_of(&w, net->link[i]))
            vc_net_link_up(net, i, up);
    return status;
}

static int verb_down(struct vc_net *net, int n, const char *const *a)
{
    (void)n;
    return set_up(net, a[0], 0);
}

static int verb_up(struct vc_net *net, int n, const char *const *a)
{
    (void)n;
    return set_up(net, a[0], 1);
}

static int verb_fault(struct vc_net *net, int n, const char *const *a)
{
    struct links w;
    struct rnl_fault f;
    int status = read_links(net, a[0], &w);
    (void)n;
    if (status == 0)
        status = rnl_fault_parse(strcmp(a[1], "none") == 0 ? "" : a[1], &f);
    for (uint32_t i = 0; i < net->links && status == 0; i++)
        if (is_of(&w, net->link[i]))
            status = vc_net_link_fault(net, i, &f);
    return status;
}

static int verb_watch(struct vc_net *net, int n, const char *const *a)
{
    struct links w;
    int status = read_links(net, a[0], &w);
    (void)n;
    for (uint32_t i = 0; i < net->links && status == 0; i++)
        if (is_of(&w, net->link[i]))
            status = vc_net_watch(net, i);
    return status;
}

/* ---- verbs that build ---- */

static int verb_switches(struct vc_net *net, int n, const char *const *a)
{
    uint64_t count;
    (void)n;
    if (!read_quantity(a[0], counts, &count) || count > UINT32_MAX)
        return rnl_fail(RNL_ERR_ARG, "switches '%s': it takes a number", a[0]);
    return vc_net_set_switches(net, (uint32_t)count);
}

static int verb_link(struct vc_net *net, int n, const char *const *a)
{
    uint32_t end[2], nth;
    const char *third = n > 2 ? a[2] : "";
    for (int i = 0; i < 2; i++) {
        const char *at = a[i];
        if (!read_node(net, &at, &end[i]) || *at)
            return no_node(net, a[i]);
    }
    if (n > 2 && (!read_number(&third, &nth) || *third || nth >= vc_net_addresses(net)))
        return rnl_fail(RNL_ERR_ARG, "address '%s': hosts have %u, counted from 0", a[2], vc_net_addresses(net));
    const struct vc_net_link_config config = {.only_nth = n > 2 ? (uint8_t)(nth + 1) : 0};
    return vc_net_connect(net, end[0], end[1], &config, NULL);
}

static int verb_star(struct vc_net *net, int n, const char *const *a)
{
    const char *at = a[0];
    uint32_t hub;
    (void)n;
    if (!read_node(net, &at, &hub) || *at)
        return no_node(net, a[0]);
    return vc_net_star(net, hub, &(struct vc_net_link_config){0});
}

/* ---- verbs about hosts ---- */

static int verb_partition(struct vc_net *net, int n, const char *const *a)
{
    struct rnl_fault_ranks r, before;
    for (int i = 0; i < n; i++) {
        int status = read_hosts(net, a[i], &r);
        if (status < 0)
            return status;
        for (uint32_t host = 0; host < net->hosts; host++)
            for (int k = 0; k < i && rnl_fault_names(&r, host); k++)
                if (read_hosts(net, a[k], &before) == 0 && rnl_fault_names(&before, host))
                    return rnl_fail(RNL_ERR_ARG, "partition: host %u is in '%s' and in '%s': in one of them it can be",
                                    host, a[k], a[i]);
    }
    for (uint32_t host = 0; host < net->hosts; host++) {
        vc_net_host_group(net, host, 0);
        for (int i = 0; i < n; i++)
            if (read_hosts(net, a[i], &r) == 0 && rnl_fault_names(&r, host))
                vc_net_host_group(net, host, (uint32_t)i + 1);
    }
    return 0;
}

static int verb_heal(struct vc_net *net, int n, const char *const *a)
{
    (void)n, (void)a;
    for (uint32_t host = 0; host < net->hosts; host++)
        vc_net_host_group(net, host, 0);
    free(net->blocked);
    net->blocked = NULL;
    return 0;
}

static int set_blocked(struct vc_net *net, const char *const *a, int on)
{
    struct rnl_fault_ranks from, to;
    int status = read_hosts(net, a[0], &from);
    if (status == 0)
        status = read_hosts(net, a[1], &to);
    for (uint32_t x = 0; x < net->hosts && status == 0; x++)
        for (uint32_t y = 0; y < net->hosts && status == 0 && rnl_fault_names(&from, x); y++)
            if (x != y && rnl_fault_names(&to, y))
                status = vc_net_block(net, x, y, on);
    return status;
}

static int verb_block(struct vc_net *net, int n, const char *const *a)
{
    (void)n;
    return set_blocked(net, a, 1);
}

static int verb_unblock(struct vc_net *net, int n, const char *const *a)
{
    (void)n;
    return set_blocked(net, a, 0);
}

static int set_power(struct vc_net *net, const char *hosts, int up)
{
    struct rnl_fault_ranks r;
    int status = read_hosts(net, hosts, &r);
    for (uint32_t host = 0; host < net->hosts && status == 0; host++)
        if (rnl_fault_names(&r, host))
            vc_net_host_up(net, host, up);
    return status;
}

static int verb_off(struct vc_net *net, int n, const char *const *a)
{
    (void)n;
    return set_power(net, a[0], 0);
}

static int verb_on(struct vc_net *net, int n, const char *const *a)
{
    (void)n;
    return set_power(net, a[0], 1);
}

static int verb_rmem_max(struct vc_net *net, int n, const char *const *a)
{
    struct rnl_fault_ranks r;
    uint64_t bytes;
    int status = read_hosts(net, a[0], &r);
    (void)n;
    if (status == 0 && (!read_quantity(a[1], sizes, &bytes) || bytes < 2304 || bytes > INT32_MAX / 2))
        return rnl_fail(RNL_ERR_ARG, "rmem_max '%s': it takes a size from 2304 B to 1 GB, like 4194304", a[1]);
    for (uint32_t host = 0; host < net->hosts && status == 0; host++)
        if (rnl_fault_names(&r, host))
            vc_net_host_receive_max(net, host, (uint32_t)bytes);
    return status;
}

static int verb_addresses(struct vc_net *net, int n, const char *const *a)
{
    const char *at = a[0];
    uint32_t count;
    (void)n;
    if (!read_number(&at, &count) || *at)
        return rnl_fail(RNL_ERR_ARG, "addresses '%s': it takes how many each host has, 1 to 4", a[0]);
    return vc_net_set_addresses(net, count);
}

static int set_address(struct vc_net *net, const char *const *a, int in, int out)
{
    struct rnl_fault_ranks r;
    const char *at = a[1];
    uint32_t nth;
    int status = read_hosts(net, a[0], &r);
    if (status == 0 && (!read_number(&at, &nth) || *at || nth >= vc_net_addresses(net)))
        return rnl_fail(RNL_ERR_ARG, "address '%s': hosts have %u, counted from 0", a[1], vc_net_addresses(net));
    for (uint32_t host = 0; host < net->hosts && status == 0; host++)
        if (rnl_fault_names(&r, host))
            vc_net_address_up(net, host, nth, in, out);
    return status;
}

static int verb_address_down(struct vc_net *net, int n, const char *const *a)
{
    int in = n > 2 && strcmp(a[2], "in") == 0, out = n > 2 && strcmp(a[2], "out") == 0;
    if (n > 2 && !in && !out)
        return rnl_fail(RNL_ERR_ARG, "address-down '%s': in, what is sent to it, or out, what is sent from it", a[2]);
    return set_address(net, a, out, in);
}

static int verb_address_up(struct vc_net *net, int n, const char *const *a)
{
    (void)n;
    return set_address(net, a, 1, 1);
}

const struct vc_net_verb vc_net_verbs[] = {
    {"switches", "COUNT", "so many switches; before any link", 1, 1, 1, verb_switches},
    {"link", "NODE NODE [NTH]",
     "a link there and back, without rate and bounds at first; NTH: for those addresses alone", 2, 3, 1, verb_link},
    {"star", "NODE", "such a link from each host to that node", 1, 1, 1, verb_star},
    {"addresses", "COUNT", "each host has so many addresses, which programs know", 1, 1, 1, verb_addresses},
    {"rate", "LINKS RATE|none", "how fast a link sends", 2, 2, 0, verb_rate},
    {"burst", "LINKS SIZE|none", "a token bucket: after a rest so much leaves at once, then as the rate says", 2, 2, 0,
     verb_burst},
    {"delay", "LINKS TIME|none", "how long its way is", 2, 2, 0, verb_delay},
    {"buffer", "LINKS SIZE|unbounded", "what waits at most to be sent", 2, 2, 0, verb_buffer},
    {"mark", "LINKS SIZE|never", "packets that find more than that waiting are marked", 2, 2, 0, verb_mark},
    {"mtu", "LINKS BYTES [silent]", "longer packets are dropped; silent: without a word", 2, 3, 0, verb_mtu},
    {"down", "LINKS", "what is on the link is lost, and what comes", 1, 1, 0, verb_down},
    {"up", "LINKS", "it works again", 1, 1, 0, verb_up},
    {"fault", "LINKS FAULTS|none", "what befalls packets there: loss=1%,delay=1us..50us ...", 2, 2, 0, verb_fault},
    {"watch", "LINKS", "how long packets wait there is counted from now on", 1, 1, 0, verb_watch},
    {"rmem_max", "HOSTS SIZE", "what a socket that is opened may ask for, as net.core.rmem_max", 2, 2, 0,
     verb_rmem_max},
    {"partition", "HOSTS...", "each of the sets is apart from the others and from the rest", 1, 64, 0, verb_partition},
    {"heal", "", "no partition and no block any more", 0, 0, 0, verb_heal},
    {"block", "HOSTS HOSTS", "what the first send to the second is lost", 2, 2, 0, verb_block},
    {"unblock", "HOSTS HOSTS", "it is not any more", 2, 2, 0, verb_unblock},
    {"off", "HOSTS", "hosts without power: nothing from them, nothing to them", 1, 1, 0, verb_off},
    {"on", "HOSTS", "they have power again", 1, 1, 0, verb_on},
    {"address-down", "HOSTS NTH [in|out]",
     "nothing reaches that address, and nothing leaves from it; or only in, or out", 2, 3, 0, verb_address_down},
    {"address-up", "HOSTS NTH", "it works again", 2, 2, 0, verb_address_up},
    {NULL, NULL, NULL, 0, 0, 0, NULL},
};

int vc_net_verb_run(struct vc_net *net, int count, const char *const *words)
{
    for (const struct vc_net_verb *v = vc_net_verbs; v->name && count > 0; v++) {
        if (strcmp(v->name, words[0]) != 0)
            continue;
        if (count - 1 < v->least || count - 1 > v->most)
            return rnl_fail(RNL_ERR_ARG, "%s takes: %s", v->name, v->arguments[0] ? v->arguments : "nothing");
        return v->run(net, count - 1, words + 1);
    }
    return rnl_fail(RNL_ERR_ARG, "the network has no verb '%s'", count > 0 ? words[0] : "");
}
