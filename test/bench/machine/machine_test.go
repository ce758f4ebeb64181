package machine

import "testing"

func TestVersions(t *testing.T) {
	slipway, kubernetes, err := versions([]byte(`{"version":"v0.1.0","kubernetesVersion":"v1.36.3"}`))
	if slipway != "v0.1.0" || kubernetes != "v1.36.3" || err != nil {
		t.Errorf("versions %q, %q, %v", slipway, kubernetes, err)
	}
}

func TestSystemName(t *testing.T) {
	for text, want := range map[string]string{
		"NAME=Debian\nPRETTY_NAME=\"Debian GNU/Linux 13\"\n": "Debian GNU/Linux 13",
		"PRETTY_NAME='Alpine'\n":                             "Alpine",
		"NAME=x\n":                                           "Linux",
	} {
		if got := systemName(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestPace(t *testing.T) {
	if took, err := Pace(); err != nil || took <= 0 {
		t.Errorf("pace %v, %v", took, err)
	}
}
