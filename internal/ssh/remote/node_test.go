package remote

import (
	"archive/tar"
	"bytes"
	"cmp"
	"errors"
	"io"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/slipwayhq/slipway/internal/bundle"
	"github.com/slipwayhq/slipway/internal/fault"
)

// unpack returns the files of a tar archive; links have their target as content.
func unpack(t *testing.T, archive []byte) map[string]string {
	t.Helper()
	out := map[string]string{}
	for in := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		out[h.Name] = h.Linkname + string(text)
	}
}

func TestNodeArchive(t *testing.T) {
	b := bundle.Bundle{Manifest: bundle.Manifest{PauseImage: "slipway.dev/pause:3.10"}}
	settings := NodeSettings{HTTPSProxy: "http://proxy.example:3128", NoProxy: "10.0.0.0/8,.local", RegistryMirrors: []string{"https://mirror.example:5000"}, TrustedCAs: []byte("-----BEGIN")}
	cases := map[string]struct {
		reason        string
		cgroupVersion int
		want          map[string]string // a part of the file
	}{
		"version 1": {"the kubelet and containerd agree about the driver", 1, map[string]string{
			"etc/slipway/kubelet.conf.d/90-host.conf": "cgroupDriver: cgroupfs", "etc/containerd/config.toml": "SystemdCgroup = false",
		}},
		"version 2": {"the kubelet and containerd agree about the driver", 2, map[string]string{
			"etc/slipway/kubelet.conf.d/90-host.conf": "cgroupDriver: systemd", "etc/containerd/config.toml": "SystemdCgroup = true",
		}},
		"settings": {"of the operator", 2, map[string]string{
			"etc/containerd/config.toml": `sandbox = "slipway.dev/pause:3.10"`, "etc/systemd/system/containerd.service.d/10-proxy.conf": `"HTTPS_PROXY=http://proxy.example:3128"`,
			"etc/containerd/certs.d/_default/hosts.toml": `[host."https://mirror.example:5000"]`, "etc/slipway/authorities/trusted.crt": "-----BEGIN",
			"usr/local/bin/kubelet": "/var/lib/slipway/current/bin/kubelet",
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			archive, err := nodeArchive(b, settings, tc.cgroupVersion)
			if err != nil {
				t.Fatal(err)
			}
			files := unpack(t, archive)
			for file, part := range tc.want {
				if !strings.Contains(files[file], part) {
					t.Errorf("%s: %s does not contain %q: %s", tc.reason, file, part, files[file])
				}
			}
			for file, text := range files {
				if regexp.MustCompile(`@[A-Z_]+@`).MatchString(text) {
					t.Errorf("%s contains a placeholder", file)
				}
			}
		})
	}
}

func TestSettingsAreChecked(t *testing.T) {
	cases := map[string]NodeSettings{
		"scheme":          {RegistryMirrors: []string{"file:///etc/shadow"}},
		"quote":           {RegistryMirrors: []string{`https://a"]` + "\n[host.\"b"}},
		"line break":      {HTTPProxy: "http://a\nExecStartPre=/bin/sh"},
		"no host":         {HTTPSProxy: "http://"},
		"quote in NO":     {NoProxy: `a" "PATH=/tmp`},
		"line break NO":   {NoProxy: "a\n[Service]"},
		"too many":        {RegistryMirrors: make([]string, maxMirrors+1)},
		"not a URL":       {RegistryMirrors: []string{"mirror"}},
		"control in NO":   {NoProxy: "a\x1b[2J"},
		"long NO":         {NoProxy: strings.Repeat("a", maxSetting+1)},
		"backslash proxy": {HTTPProxy: `http://a\x22`},
	}
	for name, s := range cases {
		if _, err := s.files(); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestParametersHaveOneLine(t *testing.T) {
	for _, value := range []string{"a\nCLAIM=b", "a\rb", "a\x00b"} {
		if _, err := standardInput(call{script: "logs", parameters: []parameter{{"A", value}}}); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%q: %v", value, err)
		}
	}
	in, err := standardInput(call{script: "logs", parameters: []parameter{{"A", "$(x) 'y' `z`"}}, input: []byte("rest")})
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(in)
	_, after, _ := strings.Cut(string(text), endOfScript+"\n")
	if err != nil || after != "A=$(x) 'y' `z`\nINPUT_SIZE=4\nINPUT_SHA256=2e09d5210db8417757b0f875c276d0cb877b22514e9a3583d2d8d7445368a027\n\nrest" {
		t.Errorf("%q %v", text, err)
	}
}

// TestCommandIsConstant covers the command line, which sudo logs and every user of the host can read: it has neither the
// script nor a parameter.
func TestCommandIsConstant(t *testing.T) {
	a, b := &Host{target: Target{User: "root", Address: "a"}}, &Host{target: Target{User: "x", Address: "b", ClaimID: strings.Repeat("a", 26), Sudo: true}}
	if one, two := a.command(), b.command(); two != "sudo -n -- "+one || len(one) > 400 || strings.ContainsAny(one, "\n!") || strings.Count(one, "'") != 2 || strings.Contains(one, "/var/lib/slipway") {
		t.Errorf("%q and %q", one, two)
	}
}

// TestScriptsHaveNoEnd checks that no line of a script ends it before its end.
func TestScriptsHaveNoEnd(t *testing.T) {
	entries, err := scripts.ReadDir("scripts")
	if err != nil || len(entries) < 10 {
		t.Fatal(err)
	}
	for _, e := range entries {
		text, err := scriptText(strings.TrimSuffix(e.Name(), ".sh"))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(text, "\n"+endOfScript+"\n") || strings.Count(text, endOfScript) != 1 || strings.Contains(text, "\x00") {
			t.Errorf("%s has another end", e.Name())
		}
	}
}

// TestLoader runs the command of scripts with the shell of this machine: the script has the rest of the input, and does not run
// if its end is missing.
func TestLoader(t *testing.T) {
	script := "# slipway: x\nread -r first\nrest=$(cat)\nprintf '%s|%s|%s' \"$first\" \"$rest\" \"$(cat <<'E'\n a\\b \nE\n)\"\nexit 7\n"
	cases := map[string]struct {
		reason, input, want string
		code                int
	}{
		"complete":   {"the script and its input", script + endOfScript + "\nA=1\n\n" + strings.Repeat("x", 9000), "A=1|\n" + strings.Repeat("x", 9000) + "| a\\b ", 7},
		"incomplete": {"the connection was lost", script, "", 1},
		"cut line":   {"the connection was lost in the last line", script + endOfScript, "", 1},
		"empty":      {"nothing arrived", "", "", 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command("/bin/sh", "-c", (&Host{}).command())
			cmd.Stdin = strings.NewReader(tc.input)
			out, err := cmd.Output()
			if string(out) != tc.want || cmd.ProcessState.ExitCode() != tc.code {
				t.Errorf("%s: %.80q, exit status %d, %v", tc.reason, out, cmd.ProcessState.ExitCode(), err)
			}
		})
	}
}

// TestLocksEndBeforeCallers checks that no script waits for another one longer than its caller waits for it.
func TestLocksEndBeforeCallers(t *testing.T) {
	timeouts := map[string]time.Duration{
		"bundle-begin": bundleTimeout(bundle.Bundle{}), "bundle-finish": bundleTimeout(bundle.Bundle{}), "bundle-remove": resetTimeout,
		"node-prepare": prepareTimeout, "node-reset": resetTimeout,
	}
	entries, err := scripts.ReadDir("scripts")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, e := range entries {
		text, err := scripts.ReadFile("scripts/" + e.Name())
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^\s*lock\b ?(.*)$`).FindAllStringSubmatch(string(text), -1) {
			if strings.HasPrefix(m[1], "()") {
				continue
			}
			found++
			seconds, err := strconv.Atoi(m[1])
			if most := cmp.Or(timeouts[strings.TrimSuffix(e.Name(), ".sh")], defaultTimeout); err != nil || time.Duration(seconds)*time.Second >= most {
				t.Errorf("%s waits for %q, and its caller for %v", e.Name(), m[1], most)
			}
		}
	}
	if found < 9 {
		t.Errorf("found %d locks", found)
	}
}
