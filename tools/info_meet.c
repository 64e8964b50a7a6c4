/* SPDX-License-Identifier: BSD-3-Clause
 *
 * info_meet.c - what `runnel info` shows of processes that meet: the services that this user may reach, as the daemon
 * keeps them, and the peers of a process's endpoints. */
#include "info.h"
#include "job/fds.h"
#include "meet/daemon.h"
#include "meet/proto.h"
#include "meet/table.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ANSWER_MS = 2000 };

/* Asks the daemon for what follows the cursor. False: it does not answer. */
static int ask(int sock, uint32_t cursor, struct rnl_meet_listed *out)
{
    const struct rnl_meet_msg list = {.kind = RNL_MEET_LIST, .u.request_id = {.request_id = cursor}};
    unsigned char bytes[RNL_MEET_BYTES_MAX];
    struct pollfd ready = {.fd = sock, .events = POLLIN};
    struct rnl_seqpacket p;
    struct rnl_meet_msg msg;
    if (rnl_seqpacket_send(sock, bytes, rnl_meet_encode(&list, bytes), NULL, 0, 0) < 0 ||
        poll(&ready, 1, ANSWER_MS) != 1 || rnl_seqpacket_receive(sock, bytes, sizeof bytes, 0, &p, 0) < 0 || p.cut ||
        rnl_meet_decode(RNL_MEET_FROM_DAEMON, bytes, p.n, &msg) != RNL_MEET_GOOD || msg.kind != RNL_MEET_LISTED)
        return 0;
    *out = msg.u.listed;
    return 1;
}

static void show_service(struct info_page *p, const struct rnl_meet_listed *s)
{
    char name[RNL_MEET_NAME_BYTES + 16], pid[32];
    snprintf(name, sizeof name, "%u/%s", s->uid, s->name);
    if (p->json) {
        info_key(p, name);
        printf("{\"uid\":%u,\"pid\":%u}", s->uid, s->pid);
        return;
    }
    snprintf(pid, sizeof pid, "process %u", s->pid);
    info_row(p, name, pid, "");
}

void info_services(struct info_page *p)
{
    const struct rnl_meet_msg greet = {.kind = RNL_MEET_GREET};
    unsigned char bytes[RNL_MEET_BYTES_MAX];
    struct rnl_meet_listed s = {.cursor = 0};
    int sock = rnl_daemon_connect(geteuid(), rnl_daemon_named()), found = 0;
    info_section(p, "services");
    if (sock >= 0 && rnl_seqpacket_send(sock, bytes, rnl_meet_encode(&greet, bytes), NULL, 0, 0) == 0)
        for (; ask(sock, s.cursor, &s) && s.name[0]; found = 1)
            show_service(p, &s);
    if (!found && !p->json)
        puts(sock < 0 ? "  no daemon runs that would keep any" : "  nobody offers any that you may reach");
    if (sock >= 0)
        close(sock);
}

void info_peers(int pid, int json)
{
    static const char *const states[] = {"none", "up", "gone"};
    struct rnl_meet_row row[RNL_MEET_TABLE_MOST];
    int size, shown = 0;
    for (unsigned n = 0; (size = rnl_meet_table_read(pid, n, row)) >= 0; n++)
        for (int i = 1; i < size; i++) {
            const struct rnl_meet_row *r = &row[i];
            if (r->state == RNL_MEET_ROW_NONE || r->state > RNL_MEET_ROW_GONE)
                continue;
            if (json)
                printf("%s{\"endpoint\":%u,\"peer\":%d,\"state\":\"%s\",\"uid\":%d,\"gid\":%d,\"pid\":%u}",
                       shown ? "," : "", n, i, states[r->state], (int)r->uid, (int)r->gid, r->pid);
            else
                printf("%s  peer %d of the endpoint alone %u: user %d, group %d, process %u, %s\n",
                       shown ? "" : "introduced:\n", i, n, (int)r->uid, (int)r->gid, r->pid, states[r->state]);
            shown = 1;
        }
}
