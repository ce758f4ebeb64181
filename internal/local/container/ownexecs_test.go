package container

import (
	"testing"
	"testing/synctest"
	"time"
)

// A command whose end is never told of is forgotten.
func TestExecs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e ownExecs
		e.Begin("lost")
		time.Sleep(execRecordTTL / 2)
		e.Begin("a")
		if !e.End("a") || e.End("a") || e.End("other") {
			t.Error("the end of a command of our own is told once")
		}
		e.Begin("b")
		time.Sleep(execRecordTTL/2 + time.Second)
		synctest.Wait()
		if e.End("lost") || !e.End("b") {
			t.Error("a command is forgotten after its time, and not before")
		}
	})
}
