package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	for name, c := range map[string]struct {
		reason, text, subnet string
		mtu                  int
		fails                bool
	}{
		"whole": {reason: "flanneld writes the first address of the range; CNI wants the range",
			text: "FLANNEL_NETWORK=10.244.0.0/16\nFLANNEL_SUBNET=10.244.3.1/24\nFLANNEL_MTU=1500\nFLANNEL_IPMASQ=true\n", subnet: "10.244.3.0/24", mtu: 1500},
		"no subnet":  {reason: "without a range there is nothing to configure", text: "FLANNEL_MTU=1500\n", fails: true},
		"bad subnet": {reason: "a damaged file is not guessed at", text: "FLANNEL_SUBNET=10.244\n", fails: true},
		"bad mtu":    {reason: "a damaged file is not guessed at", text: "FLANNEL_SUBNET=10.244.3.1/24\nFLANNEL_MTU=big\n", fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := parse(c.text)
			if c.fails != (err != nil) {
				t.Fatalf("error %v, want one: %v (%s)", err, c.fails, c.reason)
			}
			if err == nil && (l.subnet.String() != c.subnet || l.mtu != c.mtu) {
				t.Errorf("got %v (%s)", l, c.reason)
			}
		})
	}
}

func TestUpdate(t *testing.T) {
	dir := t.TempDir()
	subnet, conf := filepath.Join(dir, "subnet.env"), filepath.Join(dir, "10-slipway.conflist")
	if _, err := update(subnet, conf); err == nil {
		t.Error("no error although there is no subnet file")
	}
	if _, err := os.Stat(conf); err == nil {
		t.Error("a configuration was written before the range was known")
	}
	write := func(s string) {
		t.Helper()
		if err := os.WriteFile(subnet, []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var got []bool
	for _, text := range []string{"FLANNEL_SUBNET=10.1.2.1/24\n", "FLANNEL_SUBNET=10.1.2.1/24\n", "FLANNEL_SUBNET=10.1.3.1/24\n"} {
		write(text)
		changed, err := update(subnet, conf)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, changed)
	}
	if diff := cmp.Diff([]bool{true, false, true}, got); diff != "" {
		t.Errorf("written (-want +got):\n%s", diff)
	}
	want, err := os.ReadFile(conf)
	if err != nil {
		t.Fatal(err)
	}
	const text = `{
  "cniVersion": "1.0.0",
  "name": "slipway",
  "plugins": [
    {
      "ipam": {
        "ranges": [
          [
            {
              "subnet": "10.1.3.0/24"
            }
          ]
        ],
        "routes": [
          {
            "dst": "0.0.0.0/0"
          }
        ],
        "type": "host-local"
      },
      "type": "ptp"
    },
    {
      "capabilities": {
        "portMappings": true
      },
      "type": "portmap"
    }
  ]
}
`
	if diff := cmp.Diff(text, string(want)); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
}
