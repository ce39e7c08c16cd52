/* Accesses of interpreted operators, as objects of Python.
 *
 * Everything else that Python asks of the runtime goes through cffi, which releases the interpreter lock
 * around each call. An interpreted operator accesses the state so often that it would hand the lock over
 * at each access, to threads that want to do the same; so these calls, none of which waits for another
 * thread, keep it. They are a module of their own in the library of `specstream._native`; see
 * specstream/interpreted/runtime.py.
 *
 * A `Run` stands for what a worker runs, as long as that is an event; behind it every access raises, and so
 * does one by another thread: so no two threads are ever in one, with the lock or without. A run
 * that has to end (aborted, killed, at a limit) says so in its verdict: the access then raises what the
 * module was given by `set_ended`, and so does every later access of the run, whoever catches what.
 *
 * The file is long and one piece: a table of short methods, each of which takes its arguments, calls one
 * function of the runtime and looks at the verdict. */
#include <pyconfig.h>
#ifndef Py_GIL_DISABLED /* a Python without the lock has no stable ABI */
#define Py_LIMITED_API 0x030B0000
#endif
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "specstream.h"
#include "specstream_containers.h"

static PyObject *ended_class; /* for the life of the process */
static PyTypeObject *run_type;
static PyTypeObject *elements_type;

struct run_object {
    PyObject_HEAD
    struct ss_run *run;   /* NULL: between two events */
    unsigned long thread; /* that runs it */
};

struct elements_object {
    PyObject_HEAD
    struct run_object *owner;
    int64_t length;
    int kind; /* 'i' signed, 'u' unsigned, 'd' float64, 'f' float32, '?' bool */
    int size; /* bytes of an element */
    bool is_scratch;
};

/* ---- whether the run may go on ---- */

/* False: it has to end, and an exception is set. */
static bool goes_on(struct ss_run *run)
{
    if (run == NULL) {
        PyErr_SetString(PyExc_RuntimeError,
                        "state, event and emit of an interpreted operator are used behind the end of "
                        "their event, or in another thread: keep values of them, not themselves");
        return false;
    }
    if (run->verdict != SS_COMPLETED) {
        PyErr_SetNone(ended_class);
        return false;
    }
    return true;
}

/* Relaxed, also where it is stored: a thread finds its own number there only if it has put it there. */
static bool is_own(const struct run_object *self)
{
    return __atomic_load_n(&self->thread, __ATOMIC_RELAXED) == PyThread_get_thread_ident();
}

/* NULL: between two events, or in another thread. */
static struct ss_run *attached(PyObject *object)
{
    const struct run_object *self = (const struct run_object *)object;
    return is_own(self) ? self->run : NULL;
}

static void attach(PyObject *object, struct ss_run *run)
{
    struct run_object *self = (struct run_object *)object;
    self->run = run;
    __atomic_store_n(&self->thread, PyThread_get_thread_ident(), __ATOMIC_RELAXED);
}

static struct ss_run *begin(struct run_object *self)
{
    struct ss_run *run = attached((PyObject *)self);
    if (!goes_on(run))
        return NULL;
    /* Relaxed: it is polled. */
    if (__atomic_load_n(&run->kill, __ATOMIC_RELAXED) != 0 && ss_poll(run)) {
        PyErr_SetNone(ended_class);
        return NULL;
    }
    return run;
}

/* ---- elements ---- */

static PyObject *from_bits(int kind, int size, uint64_t bits)
{
    int unused = 64 - 8 * size;
    switch (kind) {
    case 'i':
        return PyLong_FromLongLong((int64_t)(bits << unused) >> unused);
    case 'u':
        return PyLong_FromUnsignedLongLong(bits);
    case '?':
        return PyBool_FromLong(bits != 0);
    case 'f': {
        float narrow;
        uint32_t low = (uint32_t)bits;
        memcpy(&narrow, &low, sizeof narrow);
        return PyFloat_FromDouble((double)narrow);
    }
    default: {
        double number;
        memcpy(&number, &bits, sizeof number);
        return PyFloat_FromDouble(number);
    }
    }
}

/* False: an exception is set. Who calls has checked that the value fits. */
static bool to_bits(int kind, int size, PyObject *value, uint64_t *bits)
{
    switch (kind) {
    case 'u':
        *bits = size == 8 ? PyLong_AsUnsignedLongLong(value) : (uint64_t)PyLong_AsLongLong(value);
        break;
    case '?':
        *bits = (uint64_t)PyObject_IsTrue(value);
        break;
    case 'd': {
        double number = PyFloat_AsDouble(value);
        memcpy(bits, &number, sizeof number);
        break;
    }
    case 'f': {
        float narrow = (float)PyFloat_AsDouble(value);
        uint32_t low;
        memcpy(&low, &narrow, sizeof low);
        *bits = low;
        break;
    }
    default:
        *bits = (uint64_t)PyLong_AsLongLong(value);
    }
    if (size < 8)
        *bits &= (UINT64_C(1) << 8 * size) - 1;
    return PyErr_Occurred() == NULL;
}

static bool place_of(const struct elements_object *self, PyObject *index, int64_t *at)
{
    *at = PyLong_AsLongLong(index);
    if (*at == -1 && PyErr_Occurred() != NULL)
        return false;
    if (*at < 0 || *at >= self->length) {
        PyErr_SetString(PyExc_IndexError, "no such element");
        return false;
    }
    return true;
}

static uint64_t scratch_load(const struct elements_object *self, const struct ss_run *run, int64_t at)
{
    uint64_t bits = 0;
    memcpy(&bits, (const char *)run->scratch + at * self->size, (size_t)self->size);
    return bits;
}

static PyObject *elements_get(PyObject *object, PyObject *index)
{
    struct elements_object *self = (struct elements_object *)object;
    struct ss_run *run = begin(self->owner);
    int64_t at;
    if (run == NULL || !place_of(self, index, &at))
        return NULL;
    uint64_t bits = self->is_scratch
                        ? scratch_load(self, run, at)
                        : ss_interpreted_load(run, (uint64_t)(at * self->size), (uint64_t)self->size);
    if (!goes_on(run))
        return NULL;
    return from_bits(self->kind, self->size, bits);
}

static int elements_set(PyObject *object, PyObject *index, PyObject *value)
{
    struct elements_object *self = (struct elements_object *)object;
    struct ss_run *run = begin(self->owner);
    int64_t at;
    uint64_t bits;
    if (run == NULL || value == NULL || !place_of(self, index, &at) ||
        !to_bits(self->kind, self->size, value, &bits))
        return -1;
    if (self->is_scratch)
        memcpy((char *)run->scratch + at * self->size, &bits, (size_t)self->size);
    else
        ss_interpreted_store(run, (uint64_t)(at * self->size), (uint64_t)self->size, bits);
    return goes_on(run) ? 0 : -1;
}

/* Elements [first, first + count) as bytes, which nobody can write to. */
static PyObject *elements_read(PyObject *object, PyObject *const *given, Py_ssize_t count)
{
    struct elements_object *self = (struct elements_object *)object;
    struct ss_run *run = begin(self->owner);
    if (run == NULL || count != 2)
        return NULL;
    int64_t first = PyLong_AsLongLong(given[0]), length = PyLong_AsLongLong(given[1]);
    if (PyErr_Occurred() != NULL)
        return NULL;
    if (first < 0 || length < 0 || first > self->length - length) {
        PyErr_SetString(PyExc_IndexError, "no such elements");
        return NULL;
    }
    PyObject *made = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(length * self->size));
    if (made == NULL)
        return NULL;
    char *into = PyBytes_AsString(made);
    if (length == 0)
        return made;
    if (self->is_scratch) {
        memcpy(into, (const char *)run->scratch + first * self->size, (size_t)(length * self->size));
    } else if (self->size == 8) {
        ss_interpreted_load_range(run, (uint64_t)first, (uint64_t)length, (uint64_t *)into);
    } else {
        for (int64_t i = 0; i < length && run->verdict == SS_COMPLETED; i++) {
            uint64_t bits = ss_interpreted_load(run, (uint64_t)((first + i) * self->size),
                                                (uint64_t)self->size);
            memcpy(into + i * self->size, &bits, (size_t)self->size);
        }
    }
    if (!goes_on(run)) {
        Py_DECREF(made);
        return NULL;
    }
    return made;
}

/* Elements from `first` on, of bytes as `read` gives them. */
static PyObject *elements_write(PyObject *object, PyObject *const *given, Py_ssize_t count)
{
    struct elements_object *self = (struct elements_object *)object;
    struct ss_run *run = begin(self->owner);
    char *bytes;
    Py_ssize_t length;
    if (run == NULL || count != 2 || PyBytes_AsStringAndSize(given[1], &bytes, &length) != 0)
        return NULL;
    int64_t first = PyLong_AsLongLong(given[0]), elements = length / self->size;
    if (PyErr_Occurred() != NULL)
        return NULL;
    if (first < 0 || first > self->length - elements) {
        PyErr_SetString(PyExc_IndexError, "no such elements");
        return NULL;
    }
    if (elements == 0)
        Py_RETURN_NONE;
    if (self->is_scratch) {
        memcpy((char *)run->scratch + first * self->size, bytes, (size_t)length);
    } else if (self->size == 8) {
        ss_interpreted_store_range(run, (uint64_t)first, (uint64_t)elements, (uint64_t *)bytes);
    } else {
        for (int64_t i = 0; i < elements && run->verdict == SS_COMPLETED; i++) {
            uint64_t bits = 0;
            memcpy(&bits, bytes + i * self->size, (size_t)self->size);
            ss_interpreted_store(run, (uint64_t)((first + i) * self->size), (uint64_t)self->size, bits);
        }
    }
    if (!goes_on(run))
        return NULL;
    Py_RETURN_NONE;
}

static void free_object(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static void elements_free(PyObject *object)
{
    Py_XDECREF((PyObject *)((struct elements_object *)object)->owner);
    free_object(object);
}

/* ---- runs ---- */

static PyObject *run_elements(PyObject *object, PyObject *const *given, Py_ssize_t count)
{
    if (count != 4) {
        PyErr_SetString(PyExc_TypeError, "elements(kind, size, length, is_scratch)");
        return NULL;
    }
    int64_t kind = PyLong_AsLongLong(given[0]), size = PyLong_AsLongLong(given[1]);
    int64_t length = PyLong_AsLongLong(given[2]);
    int is_scratch = PyObject_IsTrue(given[3]);
    if (PyErr_Occurred() != NULL)
        return NULL;
    allocfunc allocate = (allocfunc)PyType_GetSlot(elements_type, Py_tp_alloc);
    struct elements_object *made = (struct elements_object *)allocate(elements_type, 0);
    if (made == NULL)
        return NULL;
    Py_INCREF(object);
    made->owner = (struct run_object *)object;
    made->kind = (int)kind;
    made->size = (int)size;
    made->length = length;
    made->is_scratch = is_scratch != 0;
    return (PyObject *)made;
}

/* From here on it stands for this `struct ss_run`, in its event `row`. */
static PyObject *run_begin(PyObject *object, PyObject *const *given, Py_ssize_t count)
{
    if (count != 2)
        return NULL;
    struct ss_run *run = (struct ss_run *)(uintptr_t)PyLong_AsUnsignedLongLong(given[0]);
    int64_t row = PyLong_AsLongLong(given[1]);
    if (PyErr_Occurred() != NULL)
        return NULL;
    attach(object, run);
    ss_interpreted_begin(run, row);
    Py_RETURN_NONE;
}

/* Between two events. True: the entry returns, because the event has not completed, or is asked to. */
static PyObject *run_end(PyObject *object, PyObject *raised)
{
    struct ss_run *run = attached(object);
    attach(object, NULL);
    if (PyObject_IsTrue(raised) && run->verdict == SS_COMPLETED)
        run->verdict = SS_RAISED;
    /* Relaxed: a wish; seen late, one more event runs. */
    bool yields = __atomic_load_n(&run->yield, __ATOMIC_RELAXED) != 0;
    return PyBool_FromLong(run->verdict != SS_COMPLETED || yields);
}

/* From here on it stands for this `struct ss_run`, in a vertex of the phase that runs. */
static PyObject *run_enter(PyObject *object, PyObject *address)
{
    struct ss_run *run = (struct ss_run *)(uintptr_t)PyLong_AsUnsignedLongLong(address);
    if (PyErr_Occurred() != NULL)
        return NULL;
    attach(object, run);
    Py_RETURN_NONE;
}

/* Behind the vertex. */
static PyObject *run_leave(PyObject *object, PyObject *raised)
{
    struct ss_run *run = attached(object);
    attach(object, NULL);
    if (PyObject_IsTrue(raised) && run->verdict == SS_COMPLETED)
        run->verdict = SS_RAISED;
    Py_RETURN_NONE;
}

/* None, or raises: at each turn of the user's loops, also of a function that runs in another thread or behind
 * the event, which is no matter of the run's. */
static PyObject *run_poll(PyObject *object, PyObject *unused)
{
    (void)unused;
    if (attached(object) != NULL && begin((struct run_object *)object) == NULL)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *run_verdict(PyObject *object, PyObject *unused)
{
    (void)unused;
    const struct ss_run *run = attached(object);
    return PyLong_FromLong(run == NULL ? -1 : (long)run->verdict);
}

static PyObject *run_speculates(PyObject *object, PyObject *unused)
{
    (void)unused;
    const struct ss_run *run = attached(object);
    return PyBool_FromLong(run != NULL && run->speculative);
}

/* Where in the operator the accesses that follow stand. */
static PyObject *run_set_site(PyObject *object, PyObject *site)
{
    struct ss_run *run = attached(object);
    long number = PyLong_AsLong(site);
    if (run != NULL && number >= 0)
        run->site = (uint16_t)number;
    Py_RETURN_NONE;
}

/* Ends the run: it is to be run again as the head. */
static PyObject *run_give_up(PyObject *object, PyObject *unused)
{
    (void)unused;
    struct ss_run *run = begin((struct run_object *)object);
    if (run == NULL)
        return NULL;
    run->verdict = SS_LOG_FULL;
    PyErr_SetNone(ended_class);
    return NULL;
}

/* A column's value in the row that runs: by number, kind and size. */
static PyObject *run_column(PyObject *object, PyObject *const *given, Py_ssize_t count)
{
    struct ss_run *run = attached(object);
    if (count != 3 || !goes_on(run))
        return NULL;
    int64_t number = PyLong_AsLongLong(given[0]), kind = PyLong_AsLongLong(given[1]);
    int64_t size = PyLong_AsLongLong(given[2]);
    if (PyErr_Occurred() != NULL)
        return NULL;
    uint64_t bits = 0;
    /* The column may be shifted: an address outside of it must not be formed as a pointer. */
    uintptr_t at = (uintptr_t)run->columns[number] + (uintptr_t)run->event * (uintptr_t)size;
    memcpy(&bits, (const void *)at, (size_t)size);
    return from_bits((int)kind, (int)size, bits);
}

static PyObject *run_sequence(PyObject *object, PyObject *unused)
{
    (void)unused;
    const struct ss_run *run = attached(object);
    return goes_on(attached(object)) ? PyLong_FromLongLong(run->first_sequence + run->event) : NULL;
}

/* Words of a tuple: ints, or floats by their bits. */
static bool words_of(PyObject *tuple, uint64_t *into, Py_ssize_t most, Py_ssize_t *count)
{
    *count = PyTuple_Size(tuple);
    if (*count < 0)
        return false;
    if (*count > most) {
        PyErr_SetString(PyExc_ValueError, "too many words");
        return false;
    }
    for (Py_ssize_t i = 0; i < *count; i++) {
        PyObject *one = PyTuple_GetItem(tuple, i);
        if (!to_bits(PyFloat_Check(one) ? 'd' : 'i', 8, one, &into[i]))
            return false;
    }
    return true;
}

/* A word of what the vertex is given: by number and kind. */
static PyObject *run_given(PyObject *object, PyObject *const *given, Py_ssize_t count)
{
    struct ss_run *run = attached(object);
    if (count != 2 || !goes_on(run))
        return NULL;
    int64_t number = PyLong_AsLongLong(given[0]), kind = PyLong_AsLongLong(given[1]);
    if (PyErr_Occurred() != NULL)
        return NULL;
    return from_bits((int)kind, 8, run->given[number]);
}

/* A row of the vertex, by its words. */
static PyObject *run_send(PyObject *object, PyObject *values)
{
    struct ss_run *run = begin((struct run_object *)object);
    Py_ssize_t words = PyTuple_Size(values), count;
    if (run == NULL || words < 0)
        return NULL;
    uint64_t *row = ss_vertex_send(run, (uint64_t)words);
    if (row == NULL) {
        if (goes_on(run))
            PyErr_NoMemory();
        return NULL;
    }
    if (!words_of(values, row, words, &count)) {
        run->sent_rows--; /* the operator may catch that, and send others */
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *run_emit(PyObject *object, PyObject *values)
{
    struct ss_run *run = begin((struct run_object *)object);
    if (run == NULL)
        return NULL;
    Py_ssize_t words = (Py_ssize_t)ss_interpreted_emit_words(run) - 1, count = PyTuple_Size(values);
    uint64_t *taken = malloc((size_t)(words + 1) * sizeof *taken);
    if (taken == NULL)
        return PyErr_NoMemory();
    bool fits = words_of(values, taken, words, &count) && count == words;
    uint64_t *row = fits ? ss_interpreted_emit(run) : NULL;
    if (row != NULL)
        memcpy(row + 1, taken, (size_t)words * sizeof *taken);
    free(taken);
    if (!fits) {
        if (PyErr_Occurred() == NULL)
            PyErr_SetString(PyExc_ValueError, "a row has another number of words");
        return NULL;
    }
    if (!goes_on(run))
        return NULL;
    Py_RETURN_NONE;
}

/* ---- containers ---- */

struct call {
    struct ss_run *run;
    uint64_t container;
    uint64_t key[SS_MOST_KEY_WORDS];
    int64_t number[3];
};

/* Of (container, key or number, number ...); false: an exception is set. */
static bool taken(PyObject *object, PyObject *const *given, Py_ssize_t count, bool has_key,
                  struct call *call)
{
    *call = (struct call){.run = begin((struct run_object *)object)};
    Py_ssize_t words;
    if (call->run == NULL)
        return false;
    call->container = PyLong_AsUnsignedLongLong(given[0]);
    if (has_key && !words_of(given[1], call->key, SS_MOST_KEY_WORDS, &words))
        return false;
    for (Py_ssize_t i = has_key ? 2 : 1; i < count && i < 5; i++)
        call->number[i - (has_key ? 2 : 1)] = PyLong_AsLongLong(given[i]);
    return PyErr_Occurred() == NULL;
}

/* A word, -1 for SS_NOWHERE and -2 for a container that is full; NULL where the run ends. */
static PyObject *found(struct ss_run *run, uint64_t word)
{
    if (run->verdict == SS_RAISED && run->raised == SS_FULL) {
        run->verdict = SS_COMPLETED; /* an exception of Python's says so, which may be caught */
        run->raised = 0;
        return PyLong_FromLong(-2);
    }
    if (!goes_on(run))
        return NULL;
    return word == SS_NOWHERE ? PyLong_FromLong(-1) : PyLong_FromUnsignedLongLong(word);
}

static PyObject *nothing(struct ss_run *run)
{
    if (!goes_on(run))
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *keyed_find(PyObject *object, PyObject *const *given, Py_ssize_t count)
{
    struct call call;
    if (!taken(object, given, count, true, &call))
        return NULL;
    return found(call.run, ss_keyed_find(call.run, call.container, call.key));
}

static PyObject *keyed_insert(PyObject *object, PyObject *const *given, Py_ssize_t count)
{
    struct call call;
    if (!taken(object, given, count, true, &call))
        return NULL;
    return found(call.run, ss_keyed_insert(call.run, call.container, call.key));
}

static PyObject *keyed_remove(PyObject *object, PyObject *const *given, Py_ssize_t count)
{
    struct call call;
    if (!taken(object, given, count, false, &call))
        return NULL;
    call.run->found_in = 0;
    ss_keyed_remove(call.run, call.container, (uint64_t)call.number[0]);
    return nothing(call.run);
}

static PyObject *keyed_clear(PyObject *object, PyObject *const *given, Py_ssize_t count)
{
    struct call call;
    if (!taken(object, given, count, false, &call))
        return NULL;
    call.run->found_in = 0;
    ss_keyed_clear(call.run, call.container);
    return nothing(call.run);
}

static PyObject *keyed_count(PyObject *object, PyObject *const *given, Py_ssize_t count)
{
    struct call call;
    if (!taken(object, given, count, false, &call))
        return NULL;
    return found(call.run, ss_keyed_count(call.run, call.container));
}

static PyObject *keyed_changes(PyObject *object, PyObject *const *given, Py_ssize_t count)
{
    struct call call;
    if (!taken(object, given, count, false, &call))
        return NULL;
    return found(call.run, ss_keyed_changes(call.run, call.container));
}

/* The entries, in the order of their insertion. */
static PyObject *keyed_entries(PyObject *object, PyObject *const *given, Py_ssize_t count)
{
    struct call call;
    if (!taken(object, given, count, false, &call))
        return NULL;
    const struct ss_keyed_walk *walk = ss_keyed_entries(call.run, call.container);
    if (walk == NULL) {
        if (goes_on(call.run))
            PyErr_NoMemory();
        return NULL;
    }
    PyObject *made = PyList_New((Py_ssize_t)walk->count);
    for (uint64_t i = 0; made != NULL && i < walk->count; i++)
        if (PyList_SetItem(made, (Py_ssize_t)i, PyLong_FromUnsignedLongLong(walk->entries[i])) != 0) {
            Py_DECREF(made);
            return NULL;
        }
    return made;
}

/* The words of an entry's key. */
static PyObject *keyed_key(PyObject *object, PyObject *const *given, Py_ssize_t count)
{
    struct call call;
    if (!taken(object, given, count, false, &call))
        return NULL;
    PyObject *made = PyTuple_New((Py_ssize_t)call.number[1]);
    for (int64_t i = 0; made != NULL && i < call.number[1]; i++) {
        uint64_t word = ss_keyed_key(call.run, call.container, (uint64_t)call.number[0], (uint64_t)i);
        if (PyTuple_SetItem(made, (Py_ssize_t)i, PyLong_FromLongLong((int64_t)word)) != 0) {
            Py_DECREF(made);
            return NULL;
        }
    }
    if (!goes_on(call.run)) {
        Py_XDECREF(made);
        return NULL;
    }
    return made;
}

static PyObject *keyed_rewound(PyObject *object, PyObject *const *given, Py_ssize_t count)
{
    struct call call;
    if (!taken(object, given, count, false, &call))
        return NULL;
    if (!call.run->speculative)
        ss_timers_rewound(call.run, call.container, (uint64_t)call.number[0]);
    return nothing(call.run);
}

static PyObject *sequence_count(PyObject *object, PyObject *const *given, Py_ssize_t count)
{
    struct call call;
    if (!taken(object, given, count, false, &call))
        return NULL;
    return found(call.run, ss_sequence_count(call.run, call.container));
}

static PyObject *sequence_element(PyObject *object, PyObject *const *given, Py_ssize_t count)
{
    struct call call;
    if (!taken(object, given, count, false, &call))
        return NULL;
    return found(call.run, ss_sequence_element(call.run, call.container, (uint64_t)call.number[0]));
}

static PyObject *sequence_insert(PyObject *object, PyObject *const *given, Py_ssize_t count)
{
    struct call call;
    if (!taken(object, given, count, false, &call))
        return NULL;
    return found(call.run, ss_sequence_insert(call.run, call.container, (uint64_t)call.number[0]));
}

static PyObject *sequence_delete(PyObject *object, PyObject *const *given, Py_ssize_t count)
{
    struct call call;
    if (!taken(object, given, count, false, &call))
        return NULL;
    ss_sequence_delete(call.run, call.container, (uint64_t)call.number[0],
                       (uint64_t)call.number[1], (uint64_t)call.number[2]);
    return nothing(call.run);
}

static PyObject *timer_set(PyObject *object, PyObject *const *given, Py_ssize_t count)
{
    struct call call;
    if (!taken(object, given, count, true, &call))
        return NULL;
    call.run->found_in = 0;
    uint64_t answer = ss_timer_set(call.run, call.container, call.key, call.number[0]);
    if (answer != SS_TIMER_IS_SET && call.run->verdict == SS_RAISED)
        call.run->verdict = SS_COMPLETED; /* as in `found` */
    if (!goes_on(call.run))
        return NULL;
    return PyLong_FromUnsignedLongLong(answer);
}

/* ---- the module ---- */

#define FAST(name, function) {name, (PyCFunction)(void (*)(void))(function), METH_FASTCALL, NULL}

static PyMethodDef run_methods[] = {
    FAST("elements", run_elements),
    FAST("begin", run_begin),
    {"end", run_end, METH_O, NULL},
    {"enter", run_enter, METH_O, NULL},
    {"leave", run_leave, METH_O, NULL},
    FAST("given", run_given),
    {"send", run_send, METH_O, NULL},
    {"poll", run_poll, METH_NOARGS, NULL},
    {"verdict", run_verdict, METH_NOARGS, NULL},
    {"speculates", run_speculates, METH_NOARGS, NULL},
    {"set_site", run_set_site, METH_O, NULL},
    {"give_up", run_give_up, METH_NOARGS, NULL},
    FAST("column", run_column),
    {"sequence", run_sequence, METH_NOARGS, NULL},
    {"emit", run_emit, METH_O, NULL},
    FAST("keyed_find", keyed_find),
    FAST("keyed_insert", keyed_insert),
    FAST("keyed_remove", keyed_remove),
    FAST("keyed_clear", keyed_clear),
    FAST("keyed_count", keyed_count),
    FAST("keyed_changes", keyed_changes),
    FAST("keyed_entries", keyed_entries),
    FAST("keyed_key", keyed_key),
    FAST("keyed_rewound", keyed_rewound),
    FAST("sequence_count", sequence_count),
    FAST("sequence_element", sequence_element),
    FAST("sequence_insert", sequence_insert),
    FAST("sequence_delete", sequence_delete),
    FAST("timer_set", timer_set),
    {NULL, NULL, 0, NULL},
};

static PyMethodDef elements_methods[] = {
    FAST("read", elements_read),
    FAST("write", elements_write),
    {NULL, NULL, 0, NULL},
};

static PyType_Slot run_slots[] = {
    {Py_tp_methods, run_methods},
    {Py_tp_dealloc, (void *)free_object},
    {0, NULL},
};

static PyType_Slot elements_slots[] = {
    {Py_tp_methods, elements_methods},
    {Py_mp_subscript, (void *)elements_get},
    {Py_mp_ass_subscript, (void *)elements_set},
    {Py_tp_dealloc, (void *)elements_free},
    {0, NULL},
};

static PyType_Spec run_spec = {
    "specstream._interpreted.Run", sizeof(struct run_object), 0, Py_TPFLAGS_DEFAULT, run_slots};

static PyType_Spec elements_spec = {"specstream._interpreted.Elements", sizeof(struct elements_object),
                                    0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                    elements_slots};

static PyObject *set_ended(PyObject *module, PyObject *class)
{
    (void)module;
    Py_INCREF(class);
    Py_XDECREF(ended_class);
    ended_class = class;
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"set_ended", set_ended, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_interpreted", NULL, -1, functions, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__interpreted(void);

PyMODINIT_FUNC PyInit__interpreted(void)
{
    PyObject *module = PyModule_Create(&definition);
    if (module == NULL)
        return NULL;
#ifdef Py_GIL_DISABLED
    PyUnstable_Module_SetGIL(module, Py_MOD_GIL_NOT_USED);
#endif
    run_type = (PyTypeObject *)PyType_FromSpec(&run_spec);
    elements_type = (PyTypeObject *)PyType_FromSpec(&elements_spec);
    if (run_type == NULL || elements_type == NULL ||
        PyModule_AddObjectRef(module, "Run", (PyObject *)run_type) != 0 ||
        PyModule_AddObjectRef(module, "Elements", (PyObject *)elements_type) != 0) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
