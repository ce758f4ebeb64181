package main

import (
	"context"
	"time"

	"github.com/slipwayhq/slipway/test/bench/procfs"
	"github.com/slipwayhq/slipway/test/bench/requests"
	"github.com/slipwayhq/slipway/test/bench/result"
	"github.com/slipwayhq/slipway/test/bench/settle"
)

// calm is how long an installation is left alone before it counts as idle.
const calm = 15 * time.Second

// situation is what an idle management cluster has to look after.
type situation struct {
	name, title string
}

func empty() situation { return situation{"empty", "without clusters"} }

func populated() situation { return situation{"cluster", "with the quickstart"} }

// idleness is what was used and asked for while nothing happened.
type idleness struct {
	before, after usage
	asked         requests.Counts
	during        time.Duration // between the two times that the API server was asked for its counts
	memory        procfs.Memory // of the processes of the management cluster and the manager, at the end
	hosted        procfs.Memory // of hosted control planes, at the end
}

// measureIdle watches the installation for a while.
func (s *stage) measureIdle(ctx context.Context, where situation) error {
	s.say("idle %s for %v …", where.title, s.idle)
	if err := settle.Pause(ctx, calm); err != nil {
		return err
	}
	i, err := s.observe(ctx)
	if err != nil {
		return err
	}
	if s.wants(groupMemory) {
		s.found(memoryFigures(where, i)...)
	}
	if s.wants(groupIdle) {
		s.found(idleFigures(where, i)...)
	}
	return nil
}

// observe asks the API server outside the time that processor use is taken over, because its answer costs some.
func (s *stage) observe(ctx context.Context) (idleness, error) {
	var i idleness
	earlier, err := settle.Counts(ctx, s.config)
	if err != nil {
		return i, err
	}
	began := time.Now()
	if err := settle.Pause(ctx, time.Second); err != nil {
		return i, err
	}
	if i.before, err = s.probe.read(); err != nil {
		return i, err
	}
	if err := settle.Pause(ctx, s.idle); err != nil {
		return i, err
	}
	if i.after, err = s.probe.read(); err != nil {
		return i, err
	}
	if i.memory, i.hosted, err = s.probe.memory(); err != nil {
		return i, err
	}
	later, err := settle.Counts(ctx, s.config)
	i.during = time.Since(began)
	i.asked = later.Since(earlier)
	return i, err
}

func memoryFigures(where situation, i idleness) []result.Figure {
	mb := func(n int64) float64 { return float64(n) / 1e6 }
	out := []result.Figure{
		result.Figure{
			Name: "memory." + where.name, Title: "memory of the management cluster, idle " + where.title, Unit: result.Megabytes,
			Value: mb(i.after.Management.Memory),
		}.AtMost(750),
		{Name: "memory." + where.name + ".heap", Title: "  of it heap and stacks", Unit: result.Megabytes, Value: mb(i.memory.Anonymous)},
		{Name: "memory." + where.name + ".file", Title: "  of it pages of files, the binary first of all", Unit: result.Megabytes, Value: mb(i.memory.File)},
	}
	if i.after.Hosted.Memory > 0 {
		out = append(out,
			result.Figure{Name: "memory." + where.name + ".hosted", Title: "memory of the hosted control plane, idle", Unit: result.Megabytes, Value: mb(i.after.Hosted.Memory)},
			result.Figure{Name: "memory." + where.name + ".hosted.heap", Title: "  of it heap and stacks", Unit: result.Megabytes, Value: mb(i.hosted.Anonymous)},
			result.Figure{
				Name: "memory." + where.name + ".hosted.share", Title: "  its share, where processes share the binary", Unit: result.Megabytes, Value: mb(i.hosted.Share),
			}.AtMost(272)) // 260 MiB
	}
	return out
}

func idleFigures(where situation, i idleness) []result.Figure {
	within := i.after.At.Sub(i.before.At)
	kind := func(k requests.Kind) func(requests.Request) bool {
		return func(r requests.Request) bool { return r.Kind() == k }
	}
	rate := func(keep func(requests.Request) bool) float64 {
		return float64(i.asked.Total(keep)) / i.during.Seconds()
	}
	write := kind(requests.Write)
	out := []result.Figure{
		result.Figure{
			Name: "idle." + where.name + ".cpu", Title: "processor use of the management cluster, idle " + where.title, Unit: result.Percent,
			Value: percent(i.before.Management, i.after.Management, within),
		}.AtMost(5),
		result.Figure{
			Name: "idle." + where.name + ".writes", Title: "  writes to its API", Unit: result.PerSecond, Value: rate(write),
		}.AtMost(1),
		{
			Name: "idle." + where.name + ".leases", Title: "  of them renewals of leases", Unit: result.PerSecond,
			Value: rate(func(r requests.Request) bool { return write(r) && r.Lease() }),
		},
		{Name: "idle." + where.name + ".reads", Title: "  reads of its API", Unit: result.PerSecond, Value: rate(kind(requests.Read))},
	}
	if i.after.Hosted.Memory > 0 {
		out = append(out, result.Figure{
			Name: "idle." + where.name + ".hosted", Title: "  processor use of the hosted control plane", Unit: result.Percent,
			Value: percent(i.before.Hosted, i.after.Hosted, within),
		})
	}
	return out
}
