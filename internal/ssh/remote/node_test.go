package remote

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"

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
		if _, err := standardInput(call{script: "x", parameters: []parameter{{"A", value}}}); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%q: %v", value, err)
		}
	}
	in, err := standardInput(call{parameters: []parameter{{"A", "$(x) 'y' `z`"}}, input: []byte("rest")})
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(in); err != nil || string(text) != "A=$(x) 'y' `z`\nINPUT_SIZE=4\nINPUT_SHA256=2e09d5210db8417757b0f875c276d0cb877b22514e9a3583d2d8d7445368a027\n\nrest" {
		t.Errorf("%q %v", text, err)
	}
}

// TestCommandsAreConstant checks that the command line of a script depends on nothing but sudo.
func TestCommandsAreConstant(t *testing.T) {
	entries, err := scripts.ReadDir("scripts")
	if err != nil || len(entries) < 10 {
		t.Fatal(err)
	}
	a, b := &Host{target: Target{User: "root", Address: "a"}}, &Host{target: Target{User: "x", Address: "b"}}
	for _, e := range entries {
		name := strings.TrimSuffix(e.Name(), ".sh")
		one, err := a.command(name)
		if err != nil {
			t.Fatal(err)
		}
		if two, err := b.command(name); err != nil || one != two || len(one) > 100<<10 {
			t.Errorf("%s: %d bytes, %v", name, len(one), err)
		}
	}
}
