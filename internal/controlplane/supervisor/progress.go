package supervisor

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

const (
	// progressEvery is the minimum interval between reads of a process's activity.
	progressEvery = 2 * time.Second
	// idleShare is the share of time from which a process counts as active. etcd and the timers of an idle
	// control plane need less.
	idleShare = 0.05
	// maxSampleGap limits the time between two checks that is counted, because a suspended supervisor observes
	// nothing.
	maxSampleGap = 10 * time.Second
)

// work is the accumulated activity of a process. The supervision loop passes it to progress.
type work struct {
	used    time.Duration // processor time
	waited  time.Duration // time in which a runnable thread waited for a processor
	blocked bool          // a thread waits for a disk
}

// workOf reads the activity of processes. Processes that have exited count as zero. The supervision loop calls it after
// a check that did not succeed.
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

// blocked reports whether a thread is in uninterruptible sleep, usually because it waits for a disk.
func blocked(path string) bool {
	data, err := os.ReadFile(path)
	end := bytes.LastIndexByte(data, ')') // of the process name, which may contain any character
	return err == nil && end >= 0 && bytes.HasPrefix(data[end+1:], []byte(" D "))
}

// progress accumulates observations of a process since its last successful health check or, before the first one, since
// its start. [next] decides with it whether a process hangs: it distinguishes a process that is slow because of the
// host from one that hangs.
type progress struct {
	looked time.Time // last check
	read   time.Time // time of the sample before
	before work
	active bool // at the last sample
	// idle is the time without a response and without activity, unanswered is the time without a successful
	// response, and spent is the processor time used in the meantime.
	idle, unanswered, spent time.Duration
}

// reset resets the progress after a successful health check. The supervision loop calls it.
func (p *progress) reset(now time.Time) { *p = progress{looked: now} }

// record counts the time since the last check. The supervision loop calls it after each check that did not succeed.
// answers reports whether the process responds at all, even with a failed check.
func (p *progress) record(now time.Time, answers bool, read func() work) {
	passed := min(now.Sub(p.looked), maxSampleGap)
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

// sample compares the activity with the previous sample.
func (p *progress) sample(now time.Time, w work) {
	if p.read.IsZero() {
		p.read, p.before, p.active = now, w, true // not known yet
		return
	}
	used, waited := max(0, w.used-p.before.used), max(0, w.waited-p.before.waited) // decreases when threads have ended
	p.active = w.blocked || float64(used+waited) >= idleShare*float64(now.Sub(p.read))
	p.spent += used
	p.read, p.before = now, w
}
