package uidisolation

import "testing"

func TestIsMapped(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want bool
	}{
		"of the host":                      {"         0          0 4294967295\n", true},
		"of a container without root":      {"         0       1000          1\n         1     100000      65536\n", false},
		"all, in another place":            {"         0     100000 2147483647\n", true},
		"only the first":                   {"         0          0 1900000001\n", false},
		"in a line of several":             {"         0          0 1000\n  1900000000 1900000000 200000000\n", true},
		"in two lines, which could differ": {"  1900000000 1900000000 100000000\n 2000000000 3000000000 100000000\n", false},
		"nothing":                          {"", false},
	} {
		if got := isMapped(test.text); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestField(t *testing.T) {
	status := []byte("Name:\tx\nState:\tZ (zombie)\nUid:\t1\t2\t3\t4\nCapEff:\t00000000000000c1\nGroups:\t\n")
	for name, want := range map[string]string{"Uid": "1", "State": "Z (zombie)", "Groups": "", "Missing": ""} {
		if got := field(status, name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if got := capabilities(status, "CapEff"); got != 0xc1 {
		t.Errorf("capabilities %x", got)
	}
}
