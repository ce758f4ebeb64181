package process

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

const (
	// progressEvery is how often the work of a process is read, at most.
	progressEvery = 2 * time.Second
	// idleShare is how much of the time a process works at least that is not idle: etcd and the timers of an idle control plane take less.
	idleShare = 0.05
	// longestLook is how much of the time between two looks counts at most: a supervisor that did not run itself has seen nothing.
	longestLook = 10 * time.Second
)

// work is how much a process has worked.
type work struct {
	used    time.Duration // time of processors
	waited  time.Duration // time in which a thread could run and had no processor
	blocked bool          // a thread waits for a disk
}

// workOf reads the work of processes; those that are gone have done none.
func workOf(pids ...int) (w work) {
	for _, pid := range pids {
		tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
		if err != nil {
			continue
		}
		for _, t := range tasks {
			used, waited := schedule(fmt.Sprintf("/proc/%d/task/%s/schedstat", pid, t.Name()))
			w.used, w.waited = w.used+used, w.waited+waited
			w.blocked = w.blocked || blocked(fmt.Sprintf("/proc/%d/task/%s/stat", pid, t.Name()))
		}
	}
	return w
}

// schedule reads how long a thread has run, and how long it has waited for a processor.
func schedule(path string) (used, waited time.Duration) {
	data, err := os.ReadFile(path)
	fields := bytes.Fields(data)
	if err != nil || len(fields) < 2 {
		return 0, 0
	}
	ran, _ := strconv.ParseInt(string(fields[0]), 10, 64)
	queued, _ := strconv.ParseInt(string(fields[1]), 10, 64)
	return time.Duration(ran), time.Duration(queued)
}

// blocked reports whether a thread cannot be interrupted, which is so while it waits for a disk.
func blocked(path string) bool {
	data, err := os.ReadFile(path)
	end := bytes.LastIndexByte(data, ')') // of the name, which may contain anything
	return err == nil && end >= 0 && bytes.HasPrefix(data[end+1:], []byte(" D "))
}

// progress is what a process did since it was last known to be well: since its last good answer or, before the first one, since its start.
// It distinguishes a process that is slow, because the host is, from one that hangs.
type progress struct {
	looked time.Time // last
	read   time.Time // when before was read
	before work
	active bool // when it was read last
	// idle is how long it neither answered nor worked, unanswered how long it did not answer, spent the time of processors that it used meanwhile.
	idle, unanswered, spent time.Duration
}

// well begins anew: the process has just answered as it should.
func (p *progress) well(now time.Time) { *p = progress{looked: now} }

// look counts the time since the last look. Answers tells whether the process answers at all, even if with a failed check.
func (p *progress) look(now time.Time, answers bool, read func() work) {
	passed := min(now.Sub(p.looked), longestLook)
	if p.looked.IsZero() || passed < 0 {
		passed = 0
	}
	p.looked = now
	p.unanswered += passed
	if now.Sub(p.read) >= progressEvery {
		p.sample(now, read())
	}
	if answers || p.active {
		p.idle = 0
		return
	}
	p.idle += passed
}

// sample compares the work with that of the last sample.
func (p *progress) sample(now time.Time, w work) {
	if p.read.IsZero() {
		p.read, p.before, p.active = now, w, true // not known yet
		return
	}
	used, waited := max(0, w.used-p.before.used), max(0, w.waited-p.before.waited) // less when threads have ended
	p.active = w.blocked || float64(used+waited) >= idleShare*float64(now.Sub(p.read))
	p.spent += used
	p.read, p.before = now, w
}
