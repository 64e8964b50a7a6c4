/* board.c - a notice board: processes that nobody started together share it while they live.
 *
 *   board &               keeps the board, until it is interrupted
 *   board TEXT            puts a line on it, and prints all of it
 *   board USER/ TEXT      the same at another user's board, who has to allow it: board --anyone & */
#include <runnel/meet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 1, BOARD = 2, MOST = 4096 };
static char board[MOST];
static int received;

static int fail(const char *what)
{
    fprintf(stderr, "board: %s: %s\n", what, rnl_last_error()->text);
    return 1;
}

/* ---- who keeps it ---- */

/* A line came: it goes onto the board, with the name of its writer, which the system vouches for. */
static int on_line(rnl_stream *s, unsigned peer, void *ctx)
{
    struct rnl_cred cred;
    char text[200], line[240];
    size_t n = rnl_peek(s, NULL), used = strlen(board);
    n = n < sizeof text ? n : sizeof text - 1;
    if (rnl_receive(s, text, n) < 0 || rnl_peer_cred(ctx, peer, &cred) < 0)
        return RNL_DONE;
    int bytes = snprintf(line, sizeof line, "user %u: %.*s\n", (unsigned)cred.uid, (int)n, text);
    if (bytes > 0 && used + (size_t)bytes < sizeof board)
        memcpy(board + used, line, (size_t)bytes + 1);
    (void)!rnl_reply(s, BOARD, board, strlen(board));
    return RNL_DONE;
}

static void on_death(void *ep, unsigned peer, enum rnl_death_reason why)
{
    (void)why;
    (void)rnl_leave(ep, peer); /* its number may be given to the next one */
}

static int keep(rnl_endpoint *ep, const struct rnl_admit *who)
{
    rnl_on_death(ep, on_death, ep);
    if (rnl_handler_stream(ep, LINE, on_line, ep) < 0 || rnl_serve(ep, "board", who, NULL, NULL) < 0)
        return fail("cannot keep a board");
    printf("the board is up\n");
    fflush(stdout);
    while (rnl_wait(ep, -1) >= 0)
        ;
    return fail("cannot go on");
}

/* ---- who writes ---- */

static int on_board(rnl_stream *s, unsigned peer, void *ctx)
{
    char text[MOST];
    size_t n = rnl_peek(s, NULL);
    (void)peer, (void)ctx;
    n = n < sizeof text ? n : sizeof text;
    if (rnl_receive(s, text, n) == 0)
        fwrite(text, 1, n, stdout);
    received = 1;
    return RNL_DONE;
}

static int write_line(rnl_endpoint *ep, const char *whose, const char *text)
{
    char service[80];
    unsigned peer;
    rnl_stream *s;
    snprintf(service, sizeof service, "%sboard", whose);
    if (rnl_handler_stream(ep, BOARD, on_board, NULL) < 0 || rnl_reach(ep, service, 5000000000, &peer) < 0)
        return fail("cannot reach the board");
    const struct rnl_message begin = {.peer = peer, .handler = LINE, .bound = strlen(text), .answer = MOST};
    if (rnl_begin(ep, &begin, &s) < 0 || rnl_piece(s, text, strlen(text)) < 0 || rnl_end(s) < 0)
        return fail("cannot write");
    while (!received)
        if (rnl_wait(ep, 5000000000) < 0)
            return fail("nothing came back");
    return 0;
}

int main(int argc, char **argv)
{
    const struct rnl_options alone = {.size = sizeof alone, .flags = RNL_ALONE};
    const struct rnl_admit anyone = {.flags = RNL_ADMIT_ANYONE};
    int all = argc == 2 && strcmp(argv[1], "--anyone") == 0, status;
    rnl_endpoint *ep;
    if (rnl_open(&ep, &alone) < 0)
        return fail("cannot open an endpoint");
    if (argc == 1 || all)
        status = keep(ep, all ? &anyone : NULL);
    else
        status = write_line(ep, argc > 2 ? argv[1] : "", argv[argc - 1]);
    if (rnl_close(ep) < 0 && status == 0)
        status = fail("close");
    return status;
}
