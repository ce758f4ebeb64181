package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sync/errgroup"
)

// Machine describes where a benchmark ran, without names of hosts, paths or addresses.
type Machine struct {
	Date       string `json:"date"` // UTC
	Cores      int    `json:"cores"`
	Memory     int64  `json:"memory"` // bytes
	System     string `json:"system"`
	Kernel     string `json:"kernel"`
	Docker     string `json:"docker,omitempty"`
	Go         string `json:"go"`
	Slipway    string `json:"slipway,omitempty"`
	Kubernetes string `json:"kubernetes,omitempty"`
	// The load average of one minute. If it is close to the number of cores before the run, times are not reliable.
	LoadBefore float64 `json:"loadBefore"`
	LoadAfter  float64 `json:"loadAfter"`
	// The pace of the machine (see Pace), in nanoseconds.
	PaceBefore time.Duration `json:"paceBefore"`
	PaceAfter  time.Duration `json:"paceAfter"`
}

// DescribeMachine describes this machine and the binary before a benchmark.
func DescribeMachine(ctx context.Context, binary string) (m Machine, err error) {
	m = Machine{Date: time.Now().UTC().Format(time.DateOnly), Cores: runtime.NumCPU(), Go: runtime.Version()}
	version, err := exec.CommandContext(ctx, binary, "version", "-o", "json").Output()
	if err == nil {
		err = m.setVersions(version)
	}
	if err != nil {
		return m, fmt.Errorf("read the version of slipway: %w", err)
	}
	if out, err := exec.CommandContext(ctx, "docker", "version", "--format", "{{.Server.Version}}").Output(); err == nil { // optional
		m.Docker = strings.TrimSpace(string(out))
	}
	kernel, kernelErr := os.ReadFile("/proc/sys/kernel/osrelease")
	release, releaseErr := os.ReadFile("/etc/os-release")
	m.Kernel, m.System = strings.TrimSpace(string(kernel)), systemName(string(release))
	proc, procErr := procfs.NewDefaultFS()
	memory, memoryErr := proc.Meminfo()
	if err := errors.Join(kernelErr, releaseErr, procErr, memoryErr); err != nil {
		return m, fmt.Errorf("describe the machine: %w", err)
	}
	m.Memory = int64(*memory.MemTotalBytes)
	m.LoadBefore, m.PaceBefore, err = loadAndPace()
	return m, err
}

// Finish adds the load and the pace after the benchmark.
func (m *Machine) Finish() (err error) {
	m.LoadAfter, m.PaceAfter, err = loadAndPace()
	return err
}

func loadAndPace() (float64, time.Duration, error) {
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return 0, 0, fmt.Errorf("open /proc: %w", err)
	}
	load, err := proc.LoadAvg()
	if err != nil {
		return 0, 0, fmt.Errorf("read the load: %w", err)
	}
	pace, err := Pace()
	return load.Load1, pace, err
}

// setVersions reads the output of `slipway version -o json`.
func (m *Machine) setVersions(data []byte) error {
	var v struct{ Version, KubernetesVersion string }
	err := json.Unmarshal(data, &v)
	m.Slipway, m.Kubernetes = v.Version, v.KubernetesVersion
	return err
}

// systemName is PRETTY_NAME of an os-release file (os-release(5)).
func systemName(release string) string {
	if name := regexp.MustCompile(`(?m)^PRETTY_NAME=["']?(.*?)["']?$`).FindStringSubmatch(release); name != nil {
		return name[1]
	}
	return "Linux"
}

// Pace is the time of a fixed unit of work on all cores at once. On cores that are shared with other virtual machines it can
// double within an hour, and processor times with it.
func Pace() (time.Duration, error) {
	const units, batches = 100, 7
	var times []time.Duration
	for range batches {
		start := time.Now()
		var cores errgroup.Group
		for range runtime.NumCPU() {
			cores.Go(func() error { return encodeAndDecode(units) })
		}
		if err := cores.Wait(); err != nil {
			return 0, fmt.Errorf("measure the pace of the machine: %w", err)
		}
		times = append(times, time.Since(start)/units)
	}
	slices.Sort(times)
	return times[batches/2], nil
}

// encodeAndDecode processes 7 kB of JSON, which resembles the main work of API servers and controllers.
func encodeAndDecode(times int) error {
	type entry struct {
		Name   string            `json:"name"`
		Labels map[string]string `json:"labels"`
		Count  int               `json:"count"`
	}
	document := make([]entry, 64)
	for i := range document {
		document[i] = entry{fmt.Sprintf("entry-%02d", i), map[string]string{"app": "slipway", "tier": "bench", "zone": "here", "of": "a-document"}, i}
	}
	for range times {
		text, err := json.Marshal(document)
		if err != nil {
			return err
		}
		var decoded any
		if err := json.Unmarshal(text, &decoded); err != nil {
			return err
		}
	}
	return nil
}
