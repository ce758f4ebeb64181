package container

import (
	"testing"
	"time"
)

// A command whose end is never told of is forgotten.
func TestExecs(t *testing.T) {
	var e ownExecs
	now := time.Now()
	e.Begin("lost", now)
	e.Begin("a", now.Add(execRecordTTL))
	if !e.End("a") || e.End("a") || e.End("other") {
		t.Error("the end of a command of our own is told once")
	}
	e.Begin("b", now.Add(2*execRecordTTL+time.Second))
	if len(e.began) != 1 || e.End("lost") {
		t.Errorf("kept: %v", e.began)
	}
}
