package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// lease is the network configuration that flanneld writes for a node.
type lease struct {
	subnet netip.Prefix
	mtu    int
}

// parse parses flanneld's file of NAME=value lines.
func parse(text string) (lease, error) {
	var l lease
	for _, line := range strings.Split(text, "\n") {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		var err error
		switch name {
		case "FLANNEL_SUBNET":
			l.subnet, err = netip.ParsePrefix(value)
			l.subnet = l.subnet.Masked()
		case "FLANNEL_MTU":
			l.mtu, err = strconv.Atoi(value)
		}
		if err != nil {
			return lease{}, fmt.Errorf("reading %s: %w", name, err)
		}
	}
	if !l.subnet.IsValid() {
		return lease{}, fmt.Errorf("no FLANNEL_SUBNET yet")
	}
	return l, nil
}

// configuration returns the CNI configuration for a lease. Pods are routed (ptp), not bridged, so that a reply to a Pod
// on the same node passes the packet filter, and thereby the rules of Services, even if the kernel does not filter
// bridged packets.
func configuration(l lease) ([]byte, error) {
	ptp := map[string]any{
		"type": "ptp",
		"ipam": map[string]any{
			"type":   "host-local",
			"ranges": [][]map[string]any{{{"subnet": l.subnet.String()}}},
			"routes": []map[string]any{{"dst": "0.0.0.0/0"}},
		},
	}
	if l.mtu > 0 {
		ptp["mtu"] = l.mtu
	}
	out, err := json.MarshalIndent(map[string]any{
		"cniVersion": "1.0.0",
		"name":       "slipway",
		"plugins": []map[string]any{
			ptp,
			{"type": "portmap", "capabilities": map[string]any{"portMappings": true}},
		},
	}, "", "  ")
	return append(out, '\n'), err
}

// update writes the CNI file if it does not match the subnet file, and reports whether it did. The file is written
// atomically, because containerd reads it as soon as it exists.
func update(subnetFile, cniFile string) (bool, error) {
	text, err := os.ReadFile(subnetFile)
	if err != nil {
		return false, err
	}
	l, err := parse(string(text))
	if err != nil {
		return false, err
	}
	want, err := configuration(l)
	if err != nil {
		return false, err
	}
	if have, err := os.ReadFile(cniFile); err == nil && bytes.Equal(have, want) {
		return false, nil
	}
	draft := filepath.Join(filepath.Dir(cniFile), ".slipway-draft")
	if err := os.WriteFile(draft, want, 0o644); err != nil {
		return false, err
	}
	return true, os.Rename(draft, cniFile)
}
