/* SPDX-License-Identifier: BSD-3-Clause
 *
 * gather.c - the master's side of door.h: it waits until all workers have come, from wherever they were started, and
 * then knows the hosts of the job and how many ranks each has. */
#include "amudp/door.h"

#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WRONG(...) (rnl_amudp_wrong(AM_ERR_RESOURCE, "AMUDP_SPMDStartup", __VA_ARGS__), -1)

struct host {
    struct rnl_channel *porter; /* NULL: here, or it has left */
    char name[RNL_DOOR_HOST], address[RNL_DOOR_ADDRESS];
    uint16_t port;
    int index, workers, first;
    int *wanted; /* by those that want one */
    int wanting, least;
};
static struct gathered {
    struct host *host; /* the first is ours */
    int hosts, workers, nproc;
    int told;           /* the workers, to take their places */
    char sentence[300]; /* why it cannot be */
} g;

/* ---- the place ---- */

static int add_address(FILE *f, const struct sockaddr *at, uint16_t port)
{
    char text[RNL_DOOR_ADDRESS];
    socklen_t n = at->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
    if (getnameinfo(at, n, text, sizeof text, NULL, 0, NI_NUMERICHOST) != 0 || strchr(text, '%') != NULL)
        return 0; /* one that holds on its link only */
    return fprintf(f, "master %s %u\n", text, port) > 0;
}

/* MASTERIP, or all that there are: those of IPv6 behind the others, the loopback's last. */
static int add_addresses(FILE *f, const char *address, uint16_t port)
{
    struct ifaddrs *all, *i;
    int added = 0;
    if (address != NULL)
        return fprintf(f, "master %s %u\n", address, port) > 0;
    if (getifaddrs(&all) < 0)
        return 0;
    for (int turn = 0; turn < 4; turn++)
        for (i = all; i != NULL; i = i->ifa_next)
            if (i->ifa_addr != NULL && (i->ifa_flags & IFF_UP) && !(i->ifa_flags & IFF_LOOPBACK) == (turn < 2) &&
                i->ifa_addr->sa_family == (turn % 2 ? AF_INET6 : AF_INET))
                added += add_address(f, i->ifa_addr, port);
    freeifaddrs(all);
    return added;
}

static void on_worker(void *ctx, int wanted, enum rnl_door_event event);
static void on_message(void *ctx, struct rnl_door_guest *from, int type, const unsigned char *text, size_t bytes);

static struct host *add_host(void)
{
    struct host *more = realloc(g.host, (size_t)(g.hosts + 1) * sizeof *more);
    if (more == NULL)
        return NULL;
    g.host = more;
    struct host *h = &g.host[g.hosts];
    memset(h, 0, sizeof *h);
    h->index = g.hosts++;
    return h;
}

int rnl_amudp_gather_open(struct rnl_door *d, struct rnl_amudp_place *place)
{
    const char *address = AMUDP_getenv_prefixed("MASTERIP");
    if (address != NULL && *address == '\0')
        address = NULL;
    g = (struct gathered){.host = NULL};
    if (rnl_amudp_place_new(place) < 0)
        return -1;
    struct host *here = add_host();
    if (here == NULL || gethostname(here->name, sizeof here->name - 1) < 0) {
        unlink(place->file);
        return WRONG("no memory for a host");
    }
    d->worker = on_worker;
    d->message = on_message;
    d->ctx = NULL;
    int r = rnl_amudp_place_key(place->file, d->key);
    if (r == 0 && rnl_door_open(d, place->name) != 0)
        r = WRONG("cannot listen for workers: %s", strerror(errno));
    if (r == 0 && rnl_door_listen(d, address) < 0) {
        r = WRONG("cannot listen for workers%s%s: %s", address != NULL ? " at MASTERIP, " : "",
                  address != NULL ? address : "", strerror(errno));
        rnl_door_close(d);
    }
    if (r < 0) {
        unlink(place->file);
        return -1;
    }
    here->port = d->port;
    snprintf(here->address, sizeof here->address, "%s", address != NULL ? address : "");
    FILE *f = fopen(place->file, "ae");
    r = f != NULL && add_addresses(f, address, d->port) >= 0;
    if (f != NULL && fclose(f) != 0)
        r = 0;
    if (r)
        return 0;
    rnl_door_close(d);
    unlink(place->file);
    return WRONG("cannot write to %s: %s", place->file, strerror(errno));
}

/* ---- who comes ---- */

/* The first of them is the one. */
__attribute__((format(printf, 1, 2))) static void fail_with(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    if (g.sentence[0] == '\0')
        vsnprintf(g.sentence, sizeof g.sentence, format, ap);
    va_end(ap);
}

static void worker_of(struct host *h, int wanted, enum rnl_door_event event)
{
    int gone = event != RNL_DOOR_COME;
    h->workers += gone ? -1 : 1;
    g.workers += gone ? -1 : 1;
    /* One that nobody waits for, because there were enough, may go. */
    if (g.told && (event == RNL_DOOR_MISSING || g.workers < g.nproc))
        fail_with("a worker on %s ended on the way to its place in the job", h->name);
    if (g.told || wanted < 0)
        return;
    if (gone) {
        for (int i = 0; i < h->wanting; i++)
            if (h->wanted[i] == wanted) {
                h->wanted[i] = h->wanted[--h->wanting];
                break;
            }
        return;
    }
    int *more = realloc(h->wanted, (size_t)(h->wanting + 1) * sizeof *more);
    if (more == NULL) {
        fail_with("no memory for the ranks that workers want");
        return;
    }
    h->wanted = more;
    h->wanted[h->wanting++] = wanted;
}

static struct host *host_of(int index) /* they are sorted later */
{
    for (int i = 0; i < g.hosts; i++)
        if (g.host[i].index == index)
            return &g.host[i];
    return NULL;
}

static void on_worker(void *ctx, int wanted, enum rnl_door_event event)
{
    (void)ctx;
    worker_of(host_of(0), wanted, event);
}

/* Letters, digits, points and dashes: it goes into lists and onto command lines. */
static void copy_name(char *to, const unsigned char *from, size_t n)
{
    size_t k = 0;
    for (size_t i = 0; i < n && k < 64; i++) {
        unsigned char c = from[i];
        int fine = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (fine || (k > 0 && (c == '-' || c == '.')))
            to[k++] = (char)c;
    }
    to[k] = '\0';
    if (k == 0)
        strcpy(to, "host");
}

static void on_message(void *ctx, struct rnl_door_guest *from, int type, const unsigned char *text, size_t bytes)
{
    (void)ctx;
    struct host *h = from->host >= 0 ? host_of(from->host) : NULL;
    if (type == 'h' && h == NULL && bytes > 2) {
        h = add_host();
        if (h == NULL || rnl_door_address(from->channel->fd, 0, h->address) < 0) {
            fail_with("no memory for a host, or it has no address");
            return;
        }
        h->porter = from->channel;
        struct host *here = host_of(0);
        if (here->address[0] == '\0') /* as seen from there */
            (void)rnl_door_address(from->channel->fd, 1, here->address);
        h->port = (uint16_t)(text[0] | text[1] << 8);
        copy_name(h->name, text + 2, bytes - 2);
        from->host = h->index;
    } else if (h != NULL && (type == 'w' || type == 'g' || type == 'm') && bytes == 4) {
        int32_t wanted;
        memcpy(&wanted, text, sizeof wanted);
        worker_of(h, wanted, type == 'w' ? RNL_DOOR_COME : type == 'g' ? RNL_DOOR_GONE : RNL_DOOR_MISSING);
    } else if (h != NULL && type == -1) {
        h->porter = NULL;
        g.workers -= h->workers;
        h->workers = 0;
    }
}

/* ---- all are there ---- */

static int by_wanted(const void *a, const void *b)
{
    const struct host *x = a, *y = b;
    return x->least != y->least ? (x->least > y->least) - (x->least < y->least)
                                : (x->index > y->index) - (x->index < y->index);
}

static int by_number(const void *a, const void *b)
{
    const int *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Ranks are dealt to hosts in blocks: that has to be what their workers want. */
static void deal(void)
{
    for (int i = 0; i < g.hosts; i++) {
        struct host *h = &g.host[i];
        if (h->wanting > 0)
            qsort(h->wanted, (size_t)h->wanting, sizeof *h->wanted, by_number);
        h->least = h->wanting > 0 ? h->wanted[0] : INT32_MAX;
    }
    qsort(g.host, (size_t)g.hosts, sizeof *g.host, by_wanted);
    for (int i = 0, first = 0; i < g.hosts; i++) {
        struct host *h = &g.host[i];
        h->first = first;
        first += h->workers;
        for (int k = 0; k < h->wanting; k++) {
            if (k > 0 && h->wanted[k] == h->wanted[k - 1])
                fail_with("two workers want rank %d", h->wanted[k]);
            if (h->wanted[k] < h->first || h->wanted[k] >= first)
                fail_with("a worker on %s wants rank %d, but this host has ranks %d to %d: those of a host follow "
                          "each other",
                          h->name, h->wanted[k], h->first, first - 1);
        }
    }
}

/* Hosts may call themselves alike. */
static void tell_apart(void)
{
    for (int i = 1; i < g.hosts; i++) {
        char plain[RNL_DOOR_HOST];
        memcpy(plain, g.host[i].name, sizeof plain);
        for (int n = 2, k = 0; k < i; k++)
            if (strcmp(g.host[k].name, g.host[i].name) == 0) {
                snprintf(g.host[i].name, sizeof g.host[i].name, "%.200s-%d", plain, n++);
                k = -1;
            }
    }
}

/* Names and addresses go into the file, for amudprun --reach; their list is what is returned. */
static char *write_hosts(const struct rnl_amudp_place *place)
{
    size_t room = (size_t)g.hosts * (RNL_DOOR_HOST + 16) + 1, n = 0;
    char *list = malloc(room);
    FILE *f = fopen(place->file, "ae");
    int good = list != NULL && f != NULL;
    for (int i = 0; good && i < g.hosts; i++) {
        const struct host *h = &g.host[i];
        if (h->workers == 0)
            continue;
        good = fprintf(f, "host %s %s %u\n", h->name, h->address, h->port) > 0;
        n += (size_t)snprintf(list + n, room - n, "%s%s:%d", n > 0 ? "," : "", h->name, h->workers);
    }
    if (f != NULL && fclose(f) != 0)
        good = 0;
    if (!good) {
        fail_with("cannot write the hosts of the job to %s: %s", place->file, strerror(errno));
        free(list);
        return NULL;
    }
    return list;
}

static void tell_places(struct rnl_door *d)
{
    for (int i = 0; i < g.hosts; i++) {
        const int32_t ranks[2] = {g.host[i].first, g.host[i].workers};
        if (g.host[i].porter != NULL)
            (void)rnl_channel_send(g.host[i].porter, 'l', ranks, sizeof ranks);
        else if (g.host[i].index == 0)
            rnl_door_tell(d, 'l', ranks, sizeof ranks);
    }
    g.told = 1; /* from here on the launcher's agents see to them */
}

static void tell_failure(struct rnl_door *d)
{
    (void)WRONG("%s", g.sentence);
    rnl_door_tell(d, 'x', g.sentence, strlen(g.sentence));
    for (int i = 0; i < g.hosts; i++)
        if (g.host[i].porter != NULL)
            (void)rnl_channel_send(g.host[i].porter, 'x', g.sentence, strlen(g.sentence));
}

const char *rnl_amudp_gather_trouble(void)
{
    return g.sentence[0] != '\0' ? g.sentence : NULL;
}

char *rnl_amudp_gather_workers(struct rnl_door *d, const struct rnl_amudp_place *place, int nproc, int (*stop)(void))
{
    char *list = NULL;
    g.nproc = nproc;
    while (g.workers < nproc && g.sentence[0] == '\0') {
        if (stop())
            return NULL;
        rnl_door_turn(d, 100, -1);
    }
    if (g.workers > nproc)
        fail_with("%d workers have come, and %d are to", g.workers, nproc);
    if (g.sentence[0] == '\0')
        deal();
    if (g.sentence[0] == '\0') {
        tell_apart();
        list = host_of(0)->workers == g.workers ? strdup("") : write_hosts(place);
        if (list == NULL)
            fail_with("no memory for a list of hosts");
    }
    if (list != NULL)
        tell_places(d);
    else
        tell_failure(d);
    return list;
}
