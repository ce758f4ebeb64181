package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/moby/moby/client"

	"github.com/slipwayhq/slipway/test/bench/procfs"
	"github.com/slipwayhq/slipway/test/bench/result"
)

// describeMachine says where is measured, without names of hosts, paths or addresses.
func (b *bench) describeMachine(ctx context.Context) error {
	host, err := procfs.ReadHost(os.DirFS("/proc"))
	if err != nil {
		return err
	}
	release, err := os.ReadFile("/etc/os-release")
	if err != nil {
		return err
	}
	b.report.Machine = result.Machine{
		Date: time.Now().UTC().Format(time.DateOnly), Cores: runtime.NumCPU(), Memory: host.Memory, System: systemName(string(release)),
		Kernel: host.Kernel, Go: runtime.Version(), Docker: dockerVersion(ctx), LoadBefore: host.Load[0],
	}
	out, err := (&installation{binary: b.binary}).run(ctx, "version", "-o", "json")
	if err != nil {
		return err
	}
	b.report.Machine.Slipway, b.report.Machine.Kubernetes, err = versions([]byte(out))
	return err
}

func (b *bench) finishMachine() error {
	host, err := procfs.ReadHost(os.DirFS("/proc"))
	b.report.Machine.LoadAfter = host.Load[0]
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
