/* SPDX-License-Identifier: BSD-3-Clause
 *
 * caller.c - a process that serves or reaches, for the script beside it:
 *
 *   caller serve NAME [any | uid=N | gid=N | deny | names=N]
 *         offers the service (or N of them), echoes what comes, and prints a line for each thing that happens
 *   caller serve NAME window
 *         also offers a window, and prints a line for each notification
 *   caller serve NAME carried
 *         the same, but nobody maps the window
 *   caller await NAME put | get | atomic | quiet | import
 *         reaches it and imports its window, prints a line, and when told on its input does that, which waits if the
 *         other process is stopped meanwhile; prints what came of it
 *   caller import NAME [SECONDS [later]]
 *         reaches it, imports its window (later: when told on its input), writes, adds and reads there, and says how
 *         the window was reached
 *   caller apart NAME
 *         reaches it; shows that half a message holds up no put, and puts that wait hold up no message
 *   caller tear NAME KEY
 *         reaches the store of examples/store.c and changes the value of the key in its table, but not the sum
 *   caller serve NAME address
 *         also prints its address
 *   caller insert TEXT ADDRESS
 *         makes the endpoint of that address a peer, sends the text, prints the echo
 *   caller cross MINE THEIRS
 *         writes its own address to the file MINE, inserts that in the file THEIRS, and says when they are one peer
 *   caller twice NAME
 *         reaches it two times, says something to each of the two peers, which are one process, and leaves them
 *   caller reach NAME TEXT [SECONDS]
 *         reaches it, sends the text, prints the echo and how long that took; then sends it again when told on its
 *         input, until that ends */
#include "runnel/meet.h"
#include "runnel/window.h"
#include "support/must.h"

#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SAY = 1, ECHO = 2, WINDOW = 3, LONG = 4, WINDOW_BYTES = 1 << 20, NOTES = 6000 };
static rnl_endpoint *ep;
static int denies;
static char echo[256];

static int on_request(void *ctx, unsigned peer, const struct rnl_cred *cred)
{
    (void)ctx, (void)peer;
    printf("request uid %u gid %u pid %d\n", (unsigned)cred->uid, (unsigned)cred->gid, (int)cred->pid);
    return denies;
}

static void on_death(void *arg, unsigned peer, enum rnl_death_reason why)
{
    (void)arg;
    printf("gone %d\n", (int)why);
    TEST_MUST(rnl_leave(ep, peer) == 0);
}

static int on_say(const void *data, size_t n, unsigned peer, void *ctx)
{
    (void)ctx;
    printf("said %.*s\n", (int)n, (const char *)data);
    if (n == 5 && memcmp(data, "block", n) == 0)
        TEST_MUST(rnl_notify_block(ep) == 0);
    if (n == 7 && memcmp(data, "unblock", n) == 0)
        TEST_MUST(rnl_notify_unblock(ep) == 0);
    if (rnl_send(ep, peer, ECHO, data, n) < 0)
        printf("cannot echo: %s\n", rnl_last_error()->text);
    return 0;
}

static int on_echo(const void *data, size_t n, unsigned peer, void *ctx)
{
    (void)ctx, (void)peer;
    TEST_MUST(n < sizeof echo);
    memcpy(echo, data, n);
    echo[n] = '\0';
    return 0;
}

static int on_long(rnl_stream *s, unsigned peer, void *ctx)
{
    static unsigned char bytes[2 * WINDOW_BYTES];
    (void)peer, (void)ctx;
    printf("long %s\n", rnl_receive(s, bytes, sizeof bytes) == 0 ? "taken in" : "broken");
    return RNL_DONE;
}

static void on_note(void *ctx, rnl_window *w, unsigned peer, size_t offset, size_t n)
{
    const unsigned char *at = ctx;
    size_t wrong = 0;
    (void)w, (void)peer;
    for (size_t i = 0; i < n; i++)
        wrong += at[offset + i] != (unsigned char)((offset + i) * 7 >> 3);
    printf("landed %zu at %zu, %zu wrong\n", n, offset, wrong);
}

static void print_address(FILE *to)
{
    char address[RNL_ADDRESS_BYTES];
    TEST_MUST(rnl_address(ep, NULL, NULL, NULL, address, sizeof address) == 0);
    fprintf(to, "%s\n", address);
    fflush(to);
}

static void offer_window(unsigned flags)
{
    rnl_window *w;
    void *at;
    TEST_MUST(rnl_window_alloc(ep, WINDOW_BYTES, &at, &w) == 0);
    const struct rnl_offer o = {.size = sizeof o, .id = WINDOW, .flags = flags, .notify = on_note, .ctx = at};
    TEST_MUST(rnl_window_offer(w, &o) == 0);
}

static int import(const char *name, double seconds, bool later)
{
    static unsigned char own[WINDOW_BYTES], back[WINDOW_BYTES];
    const size_t head = 4096;
    const int64_t bound_ns = (int64_t)(seconds * 1e9);
    rnl_import *m;
    size_t bytes;
    unsigned peer;
    uint64_t was;
    for (size_t i = 0; i < sizeof own; i++)
        own[i] = (unsigned char)(i * 7 >> 3);
    int status = rnl_reach(ep, name, bound_ns, &peer);
    if (status == 0 && later) {
        printf("reached\n");
        (void)getchar();
    }
    if (status == 0)
        status = rnl_window_import(ep, peer, WINDOW, bound_ns, &m, &bytes);
    if (status == 0)
        status = rnl_put(m, head, own + head, sizeof own - head, RNL_PUT_NOTIFY);
    for (unsigned i = 0; i < 100 && status == 0; i++)
        status = rnl_fetch_add(m, 8, 3, &was);
    if (status == 0)
        status = rnl_quiet(ep, peer, bound_ns);
    if (status == 0)
        status = rnl_get(m, head, back, sizeof back - head);
    if (status < 0) {
        printf("%s: %s\n", rnl_status_name(status), rnl_last_error()->text);
        return 1;
    }
    printf("%s %zu, counted %u, %s\n", rnl_import_is_direct(m) ? "direct" : "carried", bytes, (unsigned)(was % 300),
           memcmp(back, own + head, sizeof back - head) == 0 ? "same" : "other");
    TEST_MUST(rnl_import_drop(m) == 0 && rnl_leave(ep, peer) == 0);
    return 0;
}

static int await(const char *name, const char *what)
{
    static unsigned char bytes[WINDOW_BYTES];
    rnl_import *m, *other;
    unsigned peer;
    uint64_t was;
    char line[80];
    TEST_MUST(rnl_reach(ep, name, (int64_t)20 * 1000000000, &peer) == 0);
    TEST_MUST(rnl_window_import(ep, peer, WINDOW, (int64_t)20 * 1000000000, &m, NULL) == 0);
    printf("imported\n");
    TEST_MUST(fgets(line, sizeof line, stdin));
    int status = strcmp(what, "get") == 0      ? rnl_get(m, 0, bytes, sizeof bytes)
                 : strcmp(what, "atomic") == 0 ? rnl_fetch_add(m, 8, 3, &was)
                 : strcmp(what, "import") == 0 ? rnl_window_import(ep, peer, WINDOW, -1, &other, NULL)
                                               : rnl_put(m, 0, bytes, 8, 0);
    for (unsigned i = 0; i < 100 && status == 0 && strcmp(what, "put") == 0; i++)
        status = rnl_put(m, 0, bytes, sizeof bytes, 0);
    if (status == 0)
        status = rnl_quiet(ep, peer, -1);
    printf("%s %d\n", what, status);
    return status != 0;
}

static int serve(const char *name, const char *how)
{
    uid_t uid = 0;
    gid_t gid = 0;
    unsigned names = 0;
    struct rnl_admit who = {.uid = &uid, .gid = &gid};
    who.flags = strcmp(how, "any") == 0 ? RNL_ADMIT_ANYONE : 0;
    who.uids = sscanf(how, "uid=%u", &uid) == 1;
    who.gids = sscanf(how, "gid=%u", &gid) == 1;
    denies = strcmp(how, "deny") == 0;
    (void)!sscanf(how, "names=%u", &names);
    if (strcmp(how, "window") == 0)
        offer_window(0);
    if (strcmp(how, "carried") == 0)
        offer_window(RNL_OFFER_CARRIED);
    if (strcmp(how, "address") == 0)
        who.flags = RNL_ADMIT_ANYONE;
    int status = rnl_serve(ep, name, &who, on_request, NULL);
    for (unsigned i = 0; i < names && status == 0; i++) {
        char more[64];
        snprintf(more, sizeof more, "%s-%u", name, i);
        status = rnl_serve(ep, more, &who, on_request, NULL);
    }
    if (status < 0) {
        printf("%s: %s\n", rnl_status_name(status), rnl_last_error()->text);
        return 1;
    }
    if (strcmp(how, "address") == 0)
        print_address(stdout);
    printf("serving\n");
    while (rnl_wait(ep, -1) >= 0)
        ;
    printf("cannot wait: %s\n", rnl_last_error()->text);
    return 1;
}

static int say(unsigned peer, const char *text)
{
    echo[0] = '\0';
    int status = rnl_send(ep, peer, SAY, text, strlen(text));
    while (status >= 0 && strcmp(echo, text) != 0) {
        struct rnl_peer_info info;
        status = (int)rnl_wait(ep, (int64_t)60 * 1000000000);
        if (status >= 0 && rnl_peer(ep, peer, &info) == 0 && info.state != RNL_PEER_UP)
            status = RNL_ERR_PEER_DEAD;
    }
    if (status < 0)
        printf("%s\n", rnl_status_name(status));
    else
        printf("heard %s\n", echo);
    return status < 0;
}

static int reach(const char *name, const char *text, double seconds)
{
    unsigned peer;
    struct rnl_cred cred;
    int status = rnl_reach(ep, name, (int64_t)(seconds * 1e9), &peer);
    if (status < 0) {
        printf("%s: %s\n", rnl_status_name(status), rnl_last_error()->text);
        return 1;
    }
    TEST_MUST(rnl_peer_cred(ep, peer, &cred) == 0);
    printf("reached uid %u pid %d\n", (unsigned)cred.uid, (int)cred.pid);
    char line[80];
    do {
        const uint64_t since_ns = test_now_ns();
        if (say(peer, text))
            return 1;
        printf("took %llu us\n", (unsigned long long)(test_now_ns() - since_ns) / 1000);
    } while (fgets(line, sizeof line, stdin));
    TEST_MUST(rnl_leave(ep, peer) == 0);
    return 0;
}

/* The process sends half a message, puts with notifications, and completes the message. Then it puts more than the
 * other one, which is asked to block its notifications, takes in, and sends a message. */
static int apart(const char *name)
{
    static unsigned char half[WINDOW_BYTES];
    const struct rnl_message begin = {.handler = LONG, .bound = 2 * sizeof half};
    struct rnl_message b = begin;
    const int64_t bound_ns = (int64_t)20 * 1000000000;
    unsigned char word[8];
    rnl_import *m;
    rnl_stream *s;
    rnl_token tokens[NOTES] = {{0}};
    for (size_t i = 0; i < sizeof word; i++)
        word[i] = (unsigned char)((8 + i) * 7 >> 3);
    TEST_MUST(rnl_reach(ep, name, bound_ns, &b.peer) == 0);
    TEST_MUST(rnl_window_import(ep, b.peer, WINDOW, bound_ns, &m, NULL) == 0);
    TEST_MUST(rnl_begin(ep, &b, &s) == 0 && rnl_piece(s, half, sizeof half) == 0 && rnl_flush(ep) == 0);
    int status = rnl_put(m, 8, word, 8, RNL_PUT_NOTIFY);
    if (status == 0)
        status = rnl_quiet(ep, b.peer, bound_ns);
    printf("behind half a message: %s\n", status == 0 ? "landed" : rnl_last_error()->text);
    if (status < 0)
        return 1;
    TEST_MUST(rnl_piece(s, half, sizeof half) == 0 && rnl_end(s) == 0);
    TEST_MUST(say(b.peer, "block") == 0);
    for (unsigned i = 0; i < NOTES; i++)
        while ((status = rnl_put_async(m, 8, word, 8, RNL_PUT_NOTIFY, &tokens[i])) == RNL_NO_ROOM)
            TEST_MUST(rnl_wait(ep, 1000000) >= RNL_TIMED_OUT);
    status = rnl_quiet(ep, b.peer, 300000000);
    printf("puts whose notifications wait: %s\n", rnl_status_name(status));
    status = say(b.peer, "unblock");
    if (status == 0)
        status = rnl_quiet(ep, b.peer, bound_ns);
    printf("afterwards: %s\n", rnl_status_name(status));
    return status != 0;
}

static int tear(const char *name, const char *key)
{
    unsigned peer;
    rnl_import *m;
    size_t bytes;
    unsigned char slot[256]; /* the sum, a key of 56 bytes, and the value */
    TEST_MUST(rnl_reach(ep, name, (int64_t)20 * 1000000000, &peer) == 0);
    TEST_MUST(rnl_window_import(ep, peer, 1, (int64_t)20 * 1000000000, &m, &bytes) == 0);
    for (size_t at = 0; at + sizeof slot <= bytes; at += sizeof slot) {
        TEST_MUST(rnl_get(m, at, slot, sizeof slot) == 0);
        if (strcmp((const char *)slot + 8, key) == 0)
            return rnl_put(m, at + 64, "torn", 4, 0) < 0 || rnl_quiet(ep, peer, -1) < 0;
    }
    return 1;
}

static int insert(const char *text, const char *address)
{
    unsigned peer;
    struct rnl_peer_info info = {.state = RNL_PEER_NEW};
    const uint64_t end = test_now_ns() + (uint64_t)60 * 1000000000;
    int status = rnl_insert(ep, address, &peer);
    while (status >= 0 && info.state == RNL_PEER_NEW) {
        TEST_MUST(test_now_ns() < end);
        (void)!rnl_wait(ep, 10000000);
        TEST_MUST(rnl_peer(ep, peer, &info) == 0);
    }
    if (status < 0 || info.state != RNL_PEER_UP) {
        printf("not inserted: %s\n", status < 0 ? rnl_status_name(status) : "dead");
        return 1;
    }
    status = say(peer, text);
    TEST_MUST(rnl_leave(ep, peer) == 0);
    return status;
}

/* Both sides insert each other at about the same time. */
static int cross(const char *mine, const char *theirs)
{
    char address[RNL_ADDRESS_BYTES + 2] = "", part[256];
    unsigned peer, again;
    struct rnl_peer_info info = {.state = RNL_PEER_NEW};
    const uint64_t end = test_now_ns() + (uint64_t)60 * 1000000000;
    snprintf(part, sizeof part, "%s.part", mine);
    TEST_MUST(rnl_serve(ep, mine, NULL, NULL, NULL) == 0); /* so the daemon has answered */
    FILE *f = fopen(part, "we");
    TEST_MUST(f);
    print_address(f);
    TEST_MUST(fclose(f) == 0 && rename(part, mine) == 0);
    while (!(f = fopen(theirs, "re"))) {
        TEST_MUST(test_now_ns() < end);
        TEST_MUST(rnl_extract(ep, SIZE_MAX) >= 0);
    }
    TEST_MUST(fgets(address, sizeof address, f));
    fclose(f);
    address[strcspn(address, "\n")] = '\0';
    TEST_MUST(rnl_insert(ep, address, &peer) == 0);
    while (info.state == RNL_PEER_NEW) {
        TEST_MUST(test_now_ns() < end);
        (void)!rnl_wait(ep, 100000000);
        TEST_MUST(rnl_peer(ep, peer, &info) == 0);
    }
    TEST_MUST(rnl_insert(ep, address, &again) == 0);
    int status = info.state == RNL_PEER_UP && again == peer ? say(peer, "across") : 1;
    for (unsigned i = 1; i < rnl_size(ep); i++) {
        struct rnl_cred cred;
        if (i != peer && rnl_peer_cred(ep, i, &cred) == 0)
            status = printf("also peer %u\n", i);
    }
    for (const uint64_t until = test_now_ns() + 1000000000; test_now_ns() < until;) /* the other one may still say it */
        (void)!rnl_wait(ep, 100000000);
    return status != 0;
}

static int twice(const char *name)
{
    unsigned peer[2];
    for (unsigned i = 0; i < 2; i++)
        TEST_MUST(rnl_reach(ep, name, (int64_t)60 * 1000000000, &peer[i]) == 0);
    TEST_MUST(peer[0] != peer[1]);
    for (unsigned i = 0; i < 4; i++)
        if (say(peer[i % 2], i % 2 ? "to the second" : "to the first"))
            return 1;
    TEST_MUST(rnl_leave(ep, peer[0]) == 0);
    if (say(peer[1], "still there"))
        return 1;
    return rnl_leave(ep, peer[1]);
}

int main(int argc, char **argv)
{
    const struct rnl_options opt = {.size = sizeof opt, .flags = RNL_ALONE};
    setvbuf(stdout, NULL, _IOLBF, 0);
    TEST_MUST(argc >= 3);
    int status = rnl_open(&ep, &opt);
    if (status < 0) {
        printf("%s: %s\n", rnl_status_name(status), rnl_last_error()->text);
        return 1;
    }
    TEST_MUST(rnl_handler_whole(ep, SAY, on_say, NULL, 0) == SAY);
    TEST_MUST(rnl_handler_whole(ep, ECHO, on_echo, NULL, 0) == ECHO);
    TEST_MUST(rnl_handler_stream(ep, LONG, on_long, NULL) == LONG);
    int serves = strcmp(argv[1], "serve") == 0;
    if (serves)
        rnl_on_death(ep, on_death, NULL);
    status = strcmp(argv[1], "insert") == 0   ? insert(argv[2], argv[3])
             : strcmp(argv[1], "cross") == 0  ? cross(argv[2], argv[3])
             : strcmp(argv[1], "twice") == 0  ? twice(argv[2])
             : strcmp(argv[1], "apart") == 0  ? apart(argv[2])
             : strcmp(argv[1], "tear") == 0   ? tear(argv[2], argv[3])
             : strcmp(argv[1], "await") == 0  ? await(argv[2], argv[3])
             : strcmp(argv[1], "import") == 0 ? import(argv[2], argc > 3 ? atof(argv[3]) : 20, argc > 4)
             : serves                         ? serve(argv[2], argc > 3 ? argv[3] : "")
                      : reach(argv[2], argc > 3 ? argv[3] : "hello", argc > 4 ? atof(argv[4]) : 20);
    TEST_MUST(rnl_close(ep) == 0);
    return status;
}
