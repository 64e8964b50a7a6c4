/* SPDX-License-Identifier: BSD-3-Clause
 *
 * output.c - what a node agent says to the launcher in sentences, and its half of the ranks' output and input. Output
 * is read only as far as the launcher has granted room for it, so a slow reader slows the ranks, and what is said of
 * deaths never waits behind output. */
#include "launcher/node_agent_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { OUTPUT_BYTES = 32768 };

/* ---- sentences for the launcher ---- */

enum { FAILED_MS = 5000 /* an agent that cannot go on waits so long for END */ };

void rnl_node_agent_report(struct rnl_node_agent *n, const char *format, ...)
{
    char line[512];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    rnl_control_send(&n->control, RNL_CONTROL_REPORT, line, strlen(line));
}

static void on_end(uv_timer_t *timer)
{
    struct rnl_node_agent *n = timer->data;
    n->phase = RNL_NODE_AGENT_OVER;
}

void rnl_node_agent_fail(struct rnl_node_agent *n, int status, const char *format, ...)
{
    const uint32_t header = (uint32_t)status;
    char line[512];
    va_list args;
    if (n->phase >= RNL_NODE_AGENT_FAILED)
        return; /* once, not for every rank */
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    rnl_control_send_parts(&n->control, RNL_CONTROL_FAIL, &header, sizeof header, line, strlen(line));
    n->phase = RNL_NODE_AGENT_FAILED;
    n->ending = true;
    rnl_timer_start(&n->silence, on_end, FAILED_MS, 0);
}

/* ---- output ---- */

static void end_stream(struct rnl_output *o)
{
    if (o->open)
        uv_close((uv_handle_t *)&o->pipe, NULL);
    o->open = false;
}

static void give_buffer(uv_handle_t *handle, size_t suggested, uv_buf_t *out)
{
    const struct rnl_output *o = handle->data;
    const uint64_t room = o->agent->room[o->which - 1];
    static char buffer[OUTPUT_BYTES];
    (void)suggested;
    *out = uv_buf_init(buffer, room > 0 && room < OUTPUT_BYTES ? (unsigned)room : OUTPUT_BYTES);
}

static void on_output(uv_stream_t *handle, ssize_t n, const uv_buf_t *buffer);

/* Reads all streams of one kind, or none where there is no room. With nobody to read them, they end when they are read:
 * what was written before is no error of its writer, who gets SIGPIPE from then on. */
static void read_all(struct rnl_node_agent *n, uint32_t which)
{
    const bool yes = n->room[which - 1] > 0 || n->reader_gone[which - 1];
    for (uint32_t i = n->first; i < n->first + n->count; i++) {
        struct rnl_output *o = &n->slot[i].output[which - 1];
        if (o->open && yes && !uv_is_active((uv_handle_t *)&o->pipe))
            (void)uv_read_start((uv_stream_t *)&o->pipe, give_buffer, on_output);
        else if (o->open && !yes)
            (void)uv_read_stop((uv_stream_t *)&o->pipe);
    }
}

static void on_output(uv_stream_t *handle, ssize_t bytes, const uv_buf_t *buffer)
{
    struct rnl_output *o = handle->data;
    struct rnl_node_agent *n = o->agent;
    const uint32_t header[2] = {o->rank, o->which};
    if (bytes == 0)
        return;
    if (bytes < 0 && bytes != UV_EOF)
        rnl_node_agent_fail(n, RNL_EXIT_OUTPUT, "cannot read the ranks' output: %s", strerror((int)-bytes));
    if (bytes < 0 || n->reader_gone[o->which - 1]) {
        end_stream(o);
        return;
    }
    rnl_control_send_parts(&n->control, RNL_CONTROL_OUTPUT, header, sizeof header, buffer->base, (size_t)bytes);
    n->room[o->which - 1] -= (uint64_t)bytes;
    if (n->room[o->which - 1] == 0)
        read_all(n, o->which);
}

int rnl_output_add(struct rnl_node_agent *n, uint32_t rank, int which, int fd)
{
    struct rnl_output *o = &n->slot[rank].output[which - 1];
    *o = (struct rnl_output){.agent = n, .rank = rank, .which = (uint32_t)which};
    (void)uv_pipe_init(n->loop, &o->pipe, 0);
    o->pipe.data = o;
    int e = uv_pipe_open(&o->pipe, fd);
    if (e < 0)
        close(fd);
    if (e == 0 && (n->room[which - 1] > 0 || n->reader_gone[which - 1]))
        e = uv_read_start((uv_stream_t *)&o->pipe, give_buffer, on_output);
    o->open = true;
    if (e < 0)
        end_stream(o);
    return e;
}

int rnl_output_room(struct rnl_node_agent *n, struct rnl_unpack *u)
{
    uint64_t body[2]; /* which, bytes */
    rnl_unpack_bytes(u, body, sizeof body);
    if (u->bad || body[0] < 1 || body[0] > 2)
        return -1;
    n->room[body[0] - 1] += body[1];
    n->reader_gone[body[0] - 1] |= body[1] == 0;
    if (n->slot)
        read_all(n, (uint32_t)body[0]);
    return 0;
}

/* Bytes that wait in its pipe since there is no room: else the loop would have read them. */
static bool has_unread(const struct rnl_output *o)
{
    int fd, bytes = 0;
    return o->open && !uv_is_active((const uv_handle_t *)&o->pipe) &&
           uv_fileno((const uv_handle_t *)&o->pipe, &fd) == 0 && ioctl(fd, FIONREAD, &bytes) == 0 && bytes > 0;
}

unsigned rnl_output_open(const struct rnl_node_agent *n, uint32_t rank, bool *unread)
{
    const struct rnl_output *o = n->slot[rank].output;
    *unread = has_unread(&o[0]) || has_unread(&o[1]);
    return (unsigned)o[0].open + (unsigned)o[1].open;
}

void rnl_output_end(struct rnl_node_agent *n, uint32_t rank)
{
    end_stream(&n->slot[rank].output[0]);
    end_stream(&n->slot[rank].output[1]);
}

/* ---- rank 0's input ---- */

struct input_write {
    uv_write_t request;
    size_t bytes;
    char at[];
};

static void report_taken(struct rnl_node_agent *n, uint64_t bytes)
{
    rnl_control_send(&n->control, RNL_CONTROL_TAKEN, &bytes, sizeof bytes);
}

void rnl_rank_input_end(struct rnl_node_agent *n)
{
    if (!n->input_open)
        return;
    n->input_open = false;
    uv_close((uv_handle_t *)&n->input, NULL);
    if (!n->input_ends)
        report_taken(n, 0);
}

static void input_written(uv_write_t *request, int status)
{
    struct rnl_node_agent *n = request->data;
    const size_t bytes = ((struct input_write *)request)->bytes;
    n->input_writes--;
    free(request);
    if (status == 0 && !n->input_ends)
        report_taken(n, bytes);
    else if (status < 0 || n->input_writes == 0)
        rnl_rank_input_end(n); /* rank 0 has closed it, or has had all */
}

int rnl_rank_input_receive(struct rnl_node_agent *n, const struct rnl_control_frame *f)
{
    if (n->first != 0 || n->phase < RNL_NODE_AGENT_RUNNING || n->input_ends)
        return -1;
    n->input_ends = f->bytes == 0;
    if (n->input_ends && n->input_writes == 0)
        rnl_rank_input_end(n);
    if (n->input_ends || !n->input_open)
        return 0;
    struct input_write *w = malloc(sizeof *w + f->bytes);
    if (!w)
        return -1;
    memcpy(w->at, f->body, f->bytes);
    w->bytes = f->bytes;
    w->request.data = n;
    const uv_buf_t buffer = uv_buf_init(w->at, (unsigned)f->bytes);
    n->input_writes++;
    const int e = uv_write(&w->request, (uv_stream_t *)&n->input, &buffer, 1, input_written);
    if (e < 0)
        input_written(&w->request, e);
    return 0;
}

int rnl_rank_input_new(struct rnl_node_agent *n)
{
    int ends[2];
    if (n->first != 0 || rnl_node_agent_is(n, RNL_JOB_EXPECTED) || rnl_node_agent_is(n, RNL_JOB_OWN_INPUT))
        return 0;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    n->how.in = ends[0];
    (void)uv_pipe_init(n->loop, &n->input, 0);
    const int e = uv_pipe_open(&n->input, ends[1]);
    n->input_open = e == 0;
    if (e < 0)
        close(ends[1]);
    return e;
}
