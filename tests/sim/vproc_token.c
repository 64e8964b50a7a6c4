/* SPDX-License-Identifier: BSD-3-Clause
 *
 * vproc_token.c - an ordinary program with plenty of state: tokens wander between neighbours, and each rank checks at
 * every step that its globals, its heap, errno and the last error are its own.
 *
 *     runnel sim -n N vproc-token.so STEPS [addresses]
 *
 * A rank that was started again finds everything as it was at first. */
#include <errno.h>
#include <runnel/fm.h>
#include <runnel/runnel.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct token {
    int serial, hops, last;
};
struct note {
    struct note *next;
    struct token token;
    char text[40];
};

int self = -1; /* has a name outside: one for each copy, or the run is wrong */
int table[300] = {[7] = 7, [299] = 299};
const char *names[] = {"pass", "hand", "throw"};
static int *const inside[] = {&table[7], &table[299], &self};
static int seen, wrong, deaths, refused;
static struct note *notes;
static char big[6000];
static __thread int hops_of_thread, initialised_of_thread = 42;

static int on_token(FM_stream *, unsigned);
static FM_handler *const handlers[] = {on_token}; /* a table of functions */

static void check(int good, const char *what)
{
    if (!good) {
        wrong++;
        printf("rank %d: %s is not its own\n", self, what);
    }
}

static void keep(const struct token *t)
{
    static unsigned kept;
    struct note *n = malloc(sizeof *n);
    if (!n)
        exit(3);
    n->token = *t;
    snprintf(n->text, sizeof n->text, "%s #%u", names[kept % 3], kept);
    check((unsigned)atoi(strchr(n->text, '#') + 1) == kept, "what it has printed");
    kept++;
    n->next = notes;
    notes = n;
    if (kept % 8 == 0)
        for (struct note *p = notes->next; p != NULL; p = notes->next) {
            notes->next = p->next;
            free(p);
        }
}

static void send(unsigned long to, const struct token *t)
{
    FM_stream *s = FM_begin_message(to, sizeof *t, 1);
    if (!s)
        return;
    FM_send_piece(s, t, sizeof *t);
    FM_end_message(s);
}

static int on_token(FM_stream *stream, unsigned sender)
{
    struct token t;
    (void)sender;
    FM_receive(&t, stream, sizeof t);
    seen++;
    hops_of_thread++;
    keep(&t);
    return FM_CONTINUE;
}

static void on_error(int status, unsigned long peer, const char *sentence)
{
    (void)peer;
    if (status == RNL_ERR_PEER_DEAD)
        deaths++;
    else if (status == RNL_ERR_JOB && strstr(sentence, "has been in this job before"))
        refused = 1;
    else
        printf("rank %d: %s\n", self, sentence);
}

static void fresh(void)
{
    check(self == -1 && table[7] == 7 && table[299] == 299 && big[0] == 0 && big[5999] == 0, "a global");
    check(*inside[0] == 7 && inside[2] == &self, "the address of a global");
    check(seen == 0 && !notes && initialised_of_thread == 42 && hops_of_thread == 0, "a static variable");
    check(rnl_last_error()->status == RNL_OK, "the last error");
    check(strcmp(names[1], "hand") == 0 && handlers[0] == on_token, "a table");
}

static void bye(void)
{
    printf("rank %d: %s, %d tokens\n", self, wrong ? "WRONG" : "right", seen);
}

/* A mistake that names its rank, so that the last error differs from everybody else's. */
static void provoke(void)
{
    rnl_endpoint *unused;
    const struct rnl_options options = {.size = 5000 + (uint32_t)self}; /* none is as long as that */
    check(rnl_open(&unused, &options) == RNL_ERR_ARG, "a wrong option");
}

static void step(unsigned number)
{
    struct token t = {.serial = (int)number, .hops = 1, .last = self};
    char mine[64];
    snprintf(mine, sizeof mine, "rnl_options.size is %d;", 5000 + self);
    provoke();
    errno = 1000 + self;
    usleep((useconds_t)(rand() % 2000)); /* others run here */
    check(errno == 1000 + self, "errno");
    check(strncmp(rnl_last_error()->text, mine, strlen(mine)) == 0, "the last error");
    check((int)FM_nodeid == self && table[7] == self && big[5999] == (char)self, "its rank");
    send(((unsigned long)self + 1 + (unsigned long)rand() % 2) % FM_numnodes, &t);
    FM_extract(~0ul);
}

int main(int argc, char **argv)
{
    int steps = argc > 1 ? atoi(argv[1]) : 10, local = 0;
    fresh();
    atexit(bye);
    FM_set_parameter(FM_ERROR_HANDLER, on_error);
    FM_initialize();
    if (refused) {
        printf("a rank was started again, %s\n", wrong ? "WRONG" : "with everything as at first");
        _exit(wrong != 0);
    }
    self = (int)FM_nodeid;
    table[7] = self;
    big[5999] = (char)self;
    srand((unsigned)getpid());
    if (argc > 2)
        printf("rank %d: &self %p &local %p heap %p stdout %p\n", self, (void *)&self, (void *)&local, malloc(1),
               (void *)stdout);
    FM_register_handler(1, handlers[0]);
    for (int i = 0; i < steps; i++)
        step((unsigned)i);
    FM_finalize();
    check(hops_of_thread == seen, "a variable of its thread");
    return wrong != 0;
}
