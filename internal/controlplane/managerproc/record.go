package managerproc

import (
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Subject identifies work of the manager: the reconciliation of an object, or the decoding of a cluster's
// response.
type Subject struct {
	Work       Work   `json:"work,omitempty"`
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	UID        string `json:"uid,omitempty"`
}

// Work is the kind of work. The zero value is a reconciliation.
type Work string

// Decoding is the decoding of a response of a workload cluster's API.
const Decoding Work = "decoding"

// String returns the subject for messages.
func (s Subject) String() string {
	name := s.Kind + " " + s.Namespace + "/" + s.Name
	if s.Namespace == "" {
		name = s.Kind + " " + s.Name
	}
	if s.Work == Decoding {
		return "the API of " + name
	}
	return name
}

// Layout of the record, which consists of slots of one size. A slot contains the start time of the work (nanoseconds
// since 1970, 0 for a free slot), the length of the text, the estimated memory of the work, and the text. If all slots
// are in use, further work is not recorded.
const (
	slots        = 1024
	slotSize     = 640
	weightOffset = 16
	textOffset   = 24
	recordSize   = slots * slotSize
)

// record is shared memory in which the manager records its current work. The parent process, which is the same binary,
// reads it after the manager has exited for any reason.
type record struct {
	memory []byte
	file   *os.File

	mu   sync.Mutex
	free []int
}

// newRecord creates an empty record. The parent creates one for each manager process, which maps the same memory
// ([Attach]).
func newRecord() (*record, error) {
	fd, err := unix.MemfdCreate("slipway-reconciling", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("create the record of the manager: %w", err)
	}
	f := os.NewFile(uintptr(fd), "reconciling")
	if err := f.Truncate(recordSize); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("create the record of the manager: %w", err)
	}
	return mapRecord(f)
}

// mapRecord maps f and closes it together with the record.
func mapRecord(f *os.File) (*record, error) {
	memory, err := unix.Mmap(int(f.Fd()), 0, recordSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("map the record of the manager: %w", err)
	}
	r := &record{memory: memory, file: f, free: make([]int, slots)}
	for i := range r.free {
		r.free[i] = slots - 1 - i
	}
	return r, nil
}

// Close unmaps the memory.
func (r *record) Close() error {
	err := unix.Munmap(r.memory)
	r.memory = nil
	return firstOf(err, r.file.Close())
}

// Entry is an entry of the record. The zero value is an entry without a slot. [Manager.Decode] returns it to package
// workload.
type Entry struct {
	record *record
	slot   int
}

// Weigh records the estimated memory of the work, in bytes. Package workload calls it while it decodes a response.
func (e Entry) Weigh(bytes int64) {
	if e.record != nil {
		e.record.weight(e.slot).Store(bytes)
	}
}

// End removes the entry.
func (e Entry) End() {
	if e.record == nil {
		return
	}
	e.record.mu.Lock()
	defer e.record.mu.Unlock()
	e.record.began(e.slot).Store(0)
	e.record.free = append(e.record.free, e.slot)
}

// Begin records the start of work on s. The entry must be ended exactly once.
func (r *record) Begin(s Subject, now time.Time) Entry {
	text := strings.Join([]string{string(s.Work), s.APIVersion, s.Kind, s.Namespace, s.Name, s.UID}, "\t")
	if len(text) > slotSize-textOffset {
		return Entry{}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.free) == 0 {
		return Entry{}
	}
	i := r.free[len(r.free)-1]
	r.free = r.free[:len(r.free)-1]
	slot := r.slot(i)
	binary.NativeEndian.PutUint64(slot[8:], uint64(len(text)))
	copy(slot[textOffset:], text)
	r.weight(i).Store(0)
	r.began(i).Store(now.UnixNano()) // written last, so that a reader finds the text complete
	return Entry{r, i}
}

// Suspects returns the possible causes of a crash, the oldest first. If responses were being decoded, it
// returns those with the largest memory estimates, at least a quarter of the largest, and no reconciliations,
// because some are active at any time. Otherwise, it returns all objects that were being reconciled. It is
// called after the manager has exited and validates the content of the record. exit (launch.go) calls it.
func (r *record) Suspects() []Subject {
	type entry struct {
		began, weight int64
		subject       Subject
	}
	var all []entry
	heaviest := int64(-1)
	for i := range slots {
		began := r.began(i).Load()
		length := binary.NativeEndian.Uint64(r.slot(i)[8:])
		if began == 0 || length > slotSize-textOffset {
			continue
		}
		fields := strings.Split(string(r.slot(i)[textOffset:textOffset+length]), "\t")
		if len(fields) != 6 {
			continue
		}
		e := entry{began, max(r.weight(i).Load(), 0), Subject{Work(fields[0]), fields[1], fields[2], fields[3], fields[4], fields[5]}}
		if e.subject.Work == Decoding {
			heaviest = max(heaviest, e.weight)
		}
		all = append(all, e)
	}
	if heaviest >= 0 {
		all = slices.DeleteFunc(all, func(e entry) bool { return e.subject.Work != Decoding || e.weight < heaviest/4 })
	}
	slices.SortStableFunc(all, func(a, b entry) int { return int(min(max(a.began-b.began, -1), 1)) })
	out := make([]Subject, 0, len(all))
	for _, e := range all {
		if !slices.Contains(out, e.subject) { // two controllers may reconcile the same object
			out = append(out, e.subject)
		}
	}
	return out
}

func (r *record) slot(i int) []byte { return r.memory[i*slotSize : (i+1)*slotSize] }

func (r *record) began(i int) *atomic.Int64 {
	return (*atomic.Int64)(unsafe.Pointer(&r.memory[i*slotSize])) // pages and slots are aligned to 8 bytes
}

func (r *record) weight(i int) *atomic.Int64 {
	return (*atomic.Int64)(unsafe.Pointer(&r.memory[i*slotSize+weightOffset]))
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
