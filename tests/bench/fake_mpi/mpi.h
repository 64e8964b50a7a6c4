/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mpi.h - just enough of MPI, over two named pipes, for bench/peers/mpi.c to run where no MPI is installed. Sends
 * block; receives are taken when they are waited for. FAKE_MPI in the environment chooses how it fails. */
#ifndef RNL_TESTS_FAKE_MPI_H
#define RNL_TESTS_FAKE_MPI_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    void *to; /* NULL: complete */
    int bytes;
} MPI_Request;
typedef int MPI_Comm, MPI_Datatype, MPI_Status;
enum { MPI_BYTE = 1, MPI_COMM_WORLD = 0, MPI_ANY_SOURCE = -1, MPI_MAX_LIBRARY_VERSION_STRING = 256 };
#define MPI_STATUS_IGNORE   NULL
#define MPI_STATUSES_IGNORE NULL

static int fake_in, fake_out, fake_rank;
static long fake_sent;

static int fake_fails(const char *how)
{
    const char *asked = getenv("FAKE_MPI");
    return asked && !strcmp(asked, how);
}

static void fake_all(int writing, void *at, int bytes)
{
    for (int done = 0; done < bytes;) {
        ssize_t n = writing ? write(fake_out, (char *)at + done, (size_t)(bytes - done))
                            : read(fake_in, (char *)at + done, (size_t)(bytes - done));
        if (n <= 0)
            _exit(9);
        done += (int)n;
    }
}

static void MPI_Init(int *argc, char ***argv)
{
    char name[2][300];
    (void)argc;
    (void)argv;
    fake_rank = atoi(getenv("FAKE_RANK"));
    for (int i = 0; i < 2; i++)
        snprintf(name[i], sizeof name[i], "%s/to-%d", getenv("TMPDIR"), i);
    fake_in = open(name[fake_rank], O_RDWR); /* both ways, so that neither open waits for the other rank */
    fake_out = open(name[1 - fake_rank], O_RDWR);
}

static void MPI_Finalize(void) {}

static void MPI_Comm_rank(MPI_Comm c, int *rank)
{
    (void)c;
    *rank = fake_rank;
}

static void MPI_Comm_size(MPI_Comm c, int *size)
{
    (void)c;
    *size = fake_fails("alone") ? 1 : 2;
}

static void MPI_Get_library_version(char *text, int *n)
{
    *n = snprintf(text, MPI_MAX_LIBRARY_VERSION_STRING, "Fake MPI \"1.0\",\nthe rest is long");
}

static void MPI_Send(const void *from, int bytes, MPI_Datatype t, int to, int tag, MPI_Comm c)
{
    (void)t, (void)to, (void)tag, (void)c;
    if (fake_fails("die") && ++fake_sent == 40) {
        fprintf(stderr, "----\nFake MPI: the sky fell down\n");
        _exit(3);
    }
    if (fake_fails("hang") && ++fake_sent == 40)
        for (;;)
            pause();
    if (fake_fails("lie") && bytes > 1000) {
        char *copy = malloc((size_t)bytes);
        memcpy(copy, from, (size_t)bytes);
        copy[bytes / 2] ^= 1;
        fake_all(1, copy, bytes);
        free(copy);
        return;
    }
    fake_all(1, (void *)from, bytes);
}

static void MPI_Recv(void *to, int bytes, MPI_Datatype t, int from, int tag, MPI_Comm c, MPI_Status *s)
{
    (void)t, (void)from, (void)tag, (void)c, (void)s;
    fake_all(0, to, bytes);
}

static void MPI_Bcast(void *at, int bytes, MPI_Datatype t, int root, MPI_Comm c)
{
    (void)t, (void)c;
    fake_all(fake_rank == root, at, bytes);
}

static void MPI_Barrier(MPI_Comm c)
{
    char word = 0;
    (void)c;
    fake_all(1, &word, 1);
    fake_all(0, &word, 1);
}

static void MPI_Isend(const void *from, int bytes, MPI_Datatype t, int to, int tag, MPI_Comm c, MPI_Request *r)
{
    MPI_Send(from, bytes, t, to, tag, c);
    r->to = NULL;
}

static void MPI_Irecv(void *to, int bytes, MPI_Datatype t, int from, int tag, MPI_Comm c, MPI_Request *r)
{
    (void)t, (void)from, (void)tag, (void)c;
    r->to = to;
    r->bytes = bytes;
}

static void MPI_Waitall(int n, MPI_Request *r, MPI_Status *s)
{
    (void)s;
    for (int i = 0; i < n; i++)
        if (r[i].to)
            fake_all(0, r[i].to, r[i].bytes);
}

static void MPI_Testall(int n, MPI_Request *r, int *done, MPI_Status *s)
{
    MPI_Waitall(n, r, s);
    *done = 1;
}

static void MPI_Iprobe(int from, int tag, MPI_Comm c, int *found, MPI_Status *s)
{
    (void)from, (void)tag, (void)c, (void)s;
    *found = 0;
}

#endif
