package ui

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/version"
)

// Dimensions of the picture of a rollout, in the units of its viewBox.
const (
	pictureWidth = 1000
	rowHeight    = 16
	// maxLanes is the maximum number of Machines in the picture.
	maxLanes = 40
)

// Stages of a Machine, in their order. They are also CSS classes of the picture, so assets/app.css must name them
// equally.
const (
	stageCreating = "creating"
	stageRunning  = "running"
	stageDeleting = "deleting"
	stageDeleted  = "deleted"
)

// life is what the picture shows of one Machine. The page of a cluster creates one for each Machine, also for deleted
// ones.
type life struct {
	name, version string
	controlPlane  bool
	created       time.Time
	// ready is the time of the first readiness as far as it is known; zero before it.
	ready    time.Time
	deleting time.Time
	removed  time.Time
	upToDate bool
}

func newLife(m *clusterv1.Machine) life {
	have := condition.Set(m.Status.Conditions)
	_, controlPlane := m.Labels[clusterv1.MachineControlPlaneLabel]
	l := life{name: m.Name, version: m.Spec.Version, controlPlane: controlPlane, created: m.CreationTimestamp.Time, upToDate: !have.IsFalse(clusterv1.MachineUpToDateCondition)}
	for _, t := range []string{clusterv1.MachineNodeReadyCondition, clusterv1.MachineReadyCondition} {
		if c := have.Get(t); c != nil && c.Status == "True" {
			l.ready = c.LastTransitionTime.Time
			break
		}
	}
	if l.ready.IsZero() && m.Status.NodeRef.Name != "" {
		l.ready = l.created // it has been ready, and the time is not recorded
	}
	if m.DeletionTimestamp != nil {
		l.deleting = m.DeletionTimestamp.Time
	}
	return l
}

func (l life) stage() string {
	switch {
	case !l.removed.IsZero():
		return stageDeleted
	case !l.deleting.IsZero():
		return stageDeleting
	case l.ready.IsZero():
		return stageCreating
	}
	return stageRunning
}

// rollout is the picture, and the same as a table. The template of the cluster page draws it.
type rollout struct {
	// Counts are the Machines by version and stage, the latest version first.
	Counts     []versionCount
	Lanes      []lane
	Cut        cut
	Height     int
	Ticks      []tick
	start, end time.Time
	// Active is true if a Machine was created or deleted in the period.
	Active bool
}

type versionCount struct {
	Version                              string
	Creating, Running, Deleting, Deleted int
	OutOfDate                            int
}

// lane is the row of one Machine.
type lane struct {
	Name, Version string
	Y             int
	Spans         []span
	Gone          bool
}

// span is one stage of a Machine in the picture.
type span struct {
	X, Width int
	Class    string
	Label    string
}

type tick struct {
	X    int
	Text string
}

// newRollout computes the picture of the last hour. The page of a cluster calls it.
func newRollout(lives []life, now time.Time) rollout {
	slices.SortFunc(lives, func(a, b life) int {
		return cmp.Or(boolOrder(b.controlPlane, a.controlPlane), a.created.Compare(b.created), cmp.Compare(a.name, b.name))
	})
	r := rollout{start: now.Add(-history), end: now, Counts: countVersions(lives)}
	latest := ""
	if len(r.Counts) > 0 {
		latest = r.Counts[0].Version
	}
	shown := chooseLanes(lives, r.start)
	r.Cut = cut{len(shown), len(lives)}
	for i, l := range shown {
		r.Lanes = append(r.Lanes, newLane(l, i, l.version == latest, r))
	}
	r.Active = slices.ContainsFunc(lives, func(l life) bool { return l.isActive(r.start) })
	r.Height = len(shown)*rowHeight + rowHeight + 4
	for minutes := 60; minutes >= 0; minutes -= 10 {
		text := fmt.Sprintf("-%dm", minutes)
		if minutes == 0 {
			text = "now"
		}
		r.Ticks = append(r.Ticks, tick{X: r.x(now.Add(-time.Duration(minutes) * time.Minute)), Text: text})
	}
	return r
}

func boolOrder(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// isActive reports whether the stage of the Machine has changed after a time, or will change.
func (l life) isActive(after time.Time) bool {
	return l.stage() != stageRunning || l.created.After(after) || !l.upToDate
}

// chooseLanes prefers Machines that change if there are too many.
func chooseLanes(lives []life, start time.Time) []life {
	if len(lives) <= maxLanes {
		return lives
	}
	var out []life
	for _, active := range []bool{true, false} {
		for _, l := range lives {
			if l.isActive(start) == active && len(out) < maxLanes {
				out = append(out, l)
			}
		}
	}
	return out
}

func countVersions(lives []life) []versionCount {
	var out []versionCount
	for _, l := range lives {
		i := slices.IndexFunc(out, func(c versionCount) bool { return c.Version == l.version })
		if i < 0 {
			out, i = append(out, versionCount{Version: l.version}), len(out)
		}
		c := &out[i]
		switch l.stage() {
		case stageCreating:
			c.Creating++
		case stageRunning:
			c.Running++
		case stageDeleting:
			c.Deleting++
		case stageDeleted:
			c.Deleted++
		}
		if !l.upToDate && l.stage() != stageDeleted {
			c.OutOfDate++
		}
	}
	slices.SortFunc(out, func(a, b versionCount) int { return version.Compare(b.Version, a.Version) })
	return out
}

func newLane(l life, i int, latest bool, r rollout) lane {
	out := lane{Name: l.name, Version: l.version, Y: i * rowHeight, Gone: !l.removed.IsZero()}
	age := "old"
	if latest {
		age = "new"
	}
	end := firstTime(l.removed, r.end)
	ready := firstTime(l.ready, l.deleting, end)
	deleting := firstTime(l.deleting, end)
	for _, s := range []struct {
		from, to time.Time
		stage    string
	}{{l.created, ready, stageCreating}, {ready, deleting, stageRunning}, {deleting, end, stageDeleting}} {
		from, to := r.x(s.from), r.x(s.to)
		if to > from {
			out.Spans = append(out.Spans, span{X: from, Width: to - from, Class: age + " " + s.stage, Label: s.stage})
		}
	}
	return out
}

// firstTime returns the first time that is set.
func firstTime(times ...time.Time) time.Time {
	for _, t := range times {
		if !t.IsZero() {
			return t
		}
	}
	return time.Time{}
}

// x returns the position of a time, limited to the period.
func (r rollout) x(at time.Time) int {
	position := int(float64(at.Sub(r.start)) / float64(r.end.Sub(r.start)) * pictureWidth)
	return min(max(position, 0), pictureWidth)
}
