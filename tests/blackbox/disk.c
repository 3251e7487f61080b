/* A disk that fails where a test says so, and remembers what has reached it.
 *
 * Preloaded into the server: stands between it and the system's own calls for files below one
 * folder. Nothing of the server is known here. See disk.py.
 *
 *   DISK_BELOW   the folder
 *   DISK_RULES   a file of lines `CALL ERROR NTH PART`: the NTH call from now on (1 is the next) on
 *                a file whose path holds PART fails with ERROR, once. CALL is write, torn (half is
 *                written first), flush (of a file) or names (of a folder). Read anew when replaced.
 *                `slow-write MS 0 PART`, `slow-flush MS 0 PART`: every such call takes so long.
 *   DISK_FIRED   the lines that have come true are added here
 *   DISK_LEDGER  what is on the disk is added here, once it is:
 *                `F inode bytes`, `T inode bytes` (cut), `D folder` and then `N inode name` each
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RULES_MAX 64

struct rule {
    char call[16], part[256];
    int error, left;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct rule rules[RULES_MAX];
static int count, torn_fd = -1, torn_error;
static ino_t rules_inode;

static ssize_t (*real_write)(int, const void *, size_t);
static int (*real_fsync)(int), (*real_fdatasync)(int), (*real_ftruncate)(int, off_t);

__attribute__((constructor)) static void begin(void) {
    real_write = dlsym(RTLD_NEXT, "write");
    real_fsync = dlsym(RTLD_NEXT, "fsync");
    real_fdatasync = dlsym(RTLD_NEXT, "fdatasync");
    real_ftruncate = dlsym(RTLD_NEXT, "ftruncate64");
}

/* The path of a file below the folder; 0 for any other. */
static int below(int fd, char *path) {
    const char *folder = getenv("DISK_BELOW");
    char link[64];
    if (!folder) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    if (length <= 0) return 0;
    path[length] = 0;
    return strncmp(path, folder, strlen(folder)) == 0;
}

static void add(const char *name, const char *text, size_t length) {
    const char *path = getenv(name);
    int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
    if (fd < 0) return;
    (void)!real_write(fd, text, length);
    close(fd);
}

static void note(const char *form, ...) {
    char text[PATH_MAX];
    va_list words;
    va_start(words, form);
    int length = vsnprintf(text, sizeof text, form, words);
    va_end(words);
    add("DISK_LEDGER", text, length);
}

static void read_rules(void) {
    const char *path = getenv("DISK_RULES");
    struct stat now;
    if (!path || stat(path, &now) || now.st_ino == rules_inode) return;
    FILE *file = fopen(path, "re");
    if (!file) return;
    rules_inode = now.st_ino;
    for (count = 0; count < RULES_MAX; count++) {
        struct rule *rule = &rules[count];
        if (fscanf(file, "%15s %d %d %255s", rule->call, &rule->error, &rule->left, rule->part) != 4)
            break;
    }
    fclose(file);
}

/* The error that this call shall have; 0 for none. */
static int fault(const char *call, const char *path) {
    int error = 0;
    pthread_mutex_lock(&lock);
    read_rules();
    for (int at = 0; at < count && !error; at++) {
        struct rule *rule = &rules[at];
        if (strcmp(rule->call, call) || !strstr(path, rule->part) || rule->left <= 0) continue;
        if (--rule->left == 0) {
            char text[512];
            error = rule->error;
            int length = snprintf(text, sizeof text, "%s %d %s\n", call, error, rule->part);
            add("DISK_FIRED", text, length);
        }
    }
    pthread_mutex_unlock(&lock);
    return error;
}

/* Takes the time that this call shall take. */
static void dawdle(const char *call, const char *path) {
    int ms = 0;
    pthread_mutex_lock(&lock);
    read_rules();
    for (int at = 0; at < count; at++)
        if (!strcmp(rules[at].call, call) && strstr(path, rules[at].part)) ms = rules[at].error;
    pthread_mutex_unlock(&lock);
    if (ms) usleep(ms * 1000);
}

static int failed(int error) {
    errno = error;
    return -1;
}

ssize_t write(int fd, const void *bytes, size_t length) {
    char path[PATH_MAX];
    int error;
    if (fd <= 2 || !below(fd, path)) return real_write(fd, bytes, length);
    if (fd == torn_fd) {
        torn_fd = -1;
        return failed(torn_error);
    }
    dawdle("slow-write", path);
    if ((error = fault("write", path))) return failed(error);
    if (length > 1 && (error = fault("torn", path))) {
        torn_fd = fd;
        torn_error = error;
        return real_write(fd, bytes, length / 2);
    }
    return real_write(fd, bytes, length);
}

/* All names in a folder as one text, which the caller frees. */
static char *names(const char *path, size_t *length) {
    char *text = NULL;
    FILE *out = open_memstream(&text, length);
    DIR *folder = opendir(path);
    struct dirent *one;
    if (!out) return NULL;
    fprintf(out, "D %s\n", path);
    while (folder && (one = readdir(folder)))
        fprintf(out, "N %lu %s\n", (unsigned long)one->d_ino, one->d_name);
    if (folder) closedir(folder);
    fclose(out);
    return text;
}

static int flush(int fd, int (*real)(int)) {
    char path[PATH_MAX];
    struct stat now;
    int error;
    if (!below(fd, path) || fstat(fd, &now)) return real(fd);
    int folder = S_ISDIR(now.st_mode);
    if (!folder) dawdle("slow-flush", path);
    if ((error = fault(folder ? "names" : "flush", path))) return failed(error);
    if (!getenv("DISK_LEDGER")) return real(fd);
    /* What there is before the call is on the disk after it; what comes meanwhile may not be. */
    size_t length = 0;
    char *text = folder ? names(path, &length) : NULL;
    int done = real(fd);
    if (!done && text) add("DISK_LEDGER", text, length);
    if (!done && !folder)
        note("F %lu %lld\n", (unsigned long)now.st_ino, (long long)now.st_size);
    free(text);
    return done;
}

int fsync(int fd) { return flush(fd, real_fsync); }
int fdatasync(int fd) { return flush(fd, real_fdatasync); }

int ftruncate64(int fd, off_t bytes) {
    char path[PATH_MAX];
    struct stat now;
    int done = real_ftruncate(fd, bytes);
    if (!done && getenv("DISK_LEDGER") && below(fd, path) && !fstat(fd, &now))
        note("T %lu %lld\n", (unsigned long)now.st_ino, (long long)bytes);
    return done;
}

int ftruncate(int fd, off_t bytes) { return ftruncate64(fd, bytes); }
