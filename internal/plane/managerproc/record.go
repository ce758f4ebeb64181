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

// Subject is an object that is being reconciled.
type Subject struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	UID        string `json:"uid,omitempty"`
}

// String is how people name the object.
func (s Subject) String() string {
	if s.Namespace == "" {
		return s.Kind + " " + s.Name
	}
	return s.Kind + " " + s.Namespace + "/" + s.Name
}

// The record has slots of one size: when the reconciliation began (nanoseconds since 1970, 0 for a free slot), the length
// of the text, and the text. More at once than there are slots are not recorded.
const (
	slots      = 1024
	slotSize   = 640
	textOffset = 16
	recordSize = slots * slotSize
)

// Record is the memory in which the manager says what it is reconciling. The process that started the manager reads it
// after the manager's end, however that came.
type Record struct {
	memory []byte
	file   *os.File

	mu   sync.Mutex
	free []int
}

// newRecord makes an empty record.
func newRecord() (*Record, error) {
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

// mapRecord takes f over.
func mapRecord(f *os.File) (*Record, error) {
	memory, err := unix.Mmap(int(f.Fd()), 0, recordSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("map the record of the manager: %w", err)
	}
	r := &Record{memory: memory, file: f, free: make([]int, slots)}
	for i := range r.free {
		r.free[i] = slots - 1 - i
	}
	return r, nil
}

// Close gives the memory back.
func (r *Record) Close() error {
	err := unix.Munmap(r.memory)
	r.memory = nil
	return firstOf(err, r.file.Close())
}

// Begin records that the reconciliation of s began, until done is called.
func (r *Record) Begin(s Subject, now time.Time) (done func()) {
	text := strings.Join([]string{s.APIVersion, s.Kind, s.Namespace, s.Name, s.UID}, "\t")
	if len(text) > slotSize-textOffset {
		return func() {}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.free) == 0 {
		return func() {}
	}
	i := r.free[len(r.free)-1]
	r.free = r.free[:len(r.free)-1]
	slot := r.slot(i)
	binary.NativeEndian.PutUint64(slot[8:], uint64(len(text)))
	copy(slot[textOffset:], text)
	r.began(i).Store(now.UnixNano()) // last: a reader that sees it finds the text complete
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.began(i).Store(0)
		r.free = append(r.free, i)
	}
}

// Reconciling returns what was being reconciled, what began first before the rest. It is for the time after the manager's
// end: nothing of what stands there is believed without a look.
func (r *Record) Reconciling() []Subject {
	type entry struct {
		began   int64
		subject Subject
	}
	var all []entry
	for i := range slots {
		began := r.began(i).Load()
		length := binary.NativeEndian.Uint64(r.slot(i)[8:])
		if began == 0 || length > slotSize-textOffset {
			continue
		}
		fields := strings.Split(string(r.slot(i)[textOffset:textOffset+length]), "\t")
		if len(fields) != 5 {
			continue
		}
		all = append(all, entry{began, Subject{fields[0], fields[1], fields[2], fields[3], fields[4]}})
	}
	slices.SortStableFunc(all, func(a, b entry) int { return int(min(max(a.began-b.began, -1), 1)) })
	out := make([]Subject, 0, len(all))
	for _, e := range all {
		if !slices.Contains(out, e.subject) { // two controllers may reconcile one object
			out = append(out, e.subject)
		}
	}
	return out
}

func (r *Record) slot(i int) []byte { return r.memory[i*slotSize : (i+1)*slotSize] }

func (r *Record) began(i int) *atomic.Int64 {
	return (*atomic.Int64)(unsafe.Pointer(&r.memory[i*slotSize])) // a page begins at a multiple of 8, and so does a slot
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
