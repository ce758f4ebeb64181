package machine

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/moby/moby/client"

	"github.com/slipwayhq/slipway/test/bench/procfs"
	"github.com/slipwayhq/slipway/test/bench/result"
)

// Describe says where is measured, and with which binary, without names of hosts, paths or addresses.
func Describe(ctx context.Context, binary string) (result.Machine, error) {
	host, err := procfs.ReadHost(os.DirFS("/proc"))
	if err != nil {
		return result.Machine{}, err
	}
	release, err := os.ReadFile("/etc/os-release")
	if err != nil {
		return result.Machine{}, err
	}
	m := result.Machine{
		Date: time.Now().UTC().Format(time.DateOnly), Cores: runtime.NumCPU(), Memory: host.Memory, System: systemName(string(release)),
		Kernel: host.Kernel, Go: runtime.Version(), Docker: dockerVersion(ctx), LoadBefore: host.Load[0],
	}
	out, err := exec.CommandContext(ctx, binary, "version", "-o", "json").Output()
	if err != nil {
		return m, fmt.Errorf("ask for the version: %w", err)
	}
	if m.Slipway, m.Kubernetes, err = versions(out); err != nil {
		return m, err
	}
	m.PaceBefore, err = Pace()
	return m, err
}

// Finish notes the load and the pace at the end.
func Finish(m *result.Machine) error {
	host, err := procfs.ReadHost(os.DirFS("/proc"))
	if err != nil {
		return err
	}
	m.LoadAfter = host.Load[0]
	m.PaceAfter, err = Pace()
	return err
}

// versions reads what `slipway version -o json` prints.
func versions(data []byte) (slipway, kubernetes string, err error) {
	var v struct {
		Version    string `json:"version"`
		Kubernetes string `json:"kubernetesVersion"`
	}
	if err := json.Unmarshal(data, &v); err != nil {
		return "", "", fmt.Errorf("read the version: %w", err)
	}
	return v.Version, v.Kubernetes, nil
}

// systemName is PRETTY_NAME of an os-release file (os-release(5)).
func systemName(release string) string {
	for lines := bufio.NewScanner(strings.NewReader(release)); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), "PRETTY_NAME="); ok {
			if plain, err := strconv.Unquote(value); err == nil {
				return plain
			}
			return strings.Trim(value, "'")
		}
	}
	return "Linux"
}

// dockerVersion is empty where Docker does not answer: not every measurement needs it.
func dockerVersion(ctx context.Context) string {
	c, err := client.New(client.FromEnv)
	if err != nil {
		return ""
	}
	defer func() { _ = c.Close() }()
	v, err := c.ServerVersion(ctx, client.ServerVersionOptions{})
	if err != nil {
		return ""
	}
	return v.Version
}
