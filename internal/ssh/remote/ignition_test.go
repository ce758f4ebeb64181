package remote

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipwayhq/slipway/internal/fault"
)

func TestCloudConfigOf(t *testing.T) {
	cases := map[string]struct {
		reason, text string
		want         cloudConfig
		fails        bool
	}{
		"kubeadm": {
			"what our bootstrap provider writes: a script, a unit, a user",
			`{"ignition":{"version":"2.3.0"},"storage":{"files":[{"filesystem":"root","path":"/etc/kubeadm.sh","contents":{"source":"data:,a%20b"},"mode":448,"user":{"name":"root"},"group":{"name":"root"}}]},` +
				`"systemd":{"units":[{"name":"kubeadm.service","enabled":true,"contents":"[Unit]"}]},"passwd":{"users":[{"name":"ops","groups":["a","b"],"sshAuthorizedKeys":["k"]}]}}`,
			cloudConfig{
				WriteFiles: []cloudFile{
					{Path: "/etc/kubeadm.sh", Content: "YSBi", Encoding: "base64", Permissions: "0700", Owner: "root:root"},
					{Path: "/etc/systemd/system/kubeadm.service", Content: "W1VuaXRd", Encoding: "base64", Permissions: "0644", Owner: "root:root"},
				},
				Users:  []cloudUser{{Name: "ops", Groups: "a,b", SSHAuthorizedKeys: []string{"k"}}},
				RunCmd: [][]string{{"systemctl", "daemon-reload"}, {"systemctl", "enable", "kubeadm.service"}, {"systemctl", "start", "kubeadm.service"}},
			}, false,
		},
		"version 3": {
			"directories, links, compressed files and masked units",
			`{"ignition":{"version":"3.4.0"},"storage":{"directories":[{"path":"/a"}],"links":[{"path":"/b/c","target":"/a"}],"files":[{"path":"/d","append":[],"contents":{"compression":"gzip","source":"data:;base64,H4s="}}]},` +
				`"systemd":{"units":[{"name":"x.service","mask":true,"dropins":[{"name":"y.conf","contents":"z"}]}]}}`,
			cloudConfig{
				BootCmd: [][]string{{"install", "-d", "-m", "0755", "-o", "root", "-g", "root", "--", "/a"}},
				WriteFiles: []cloudFile{
					{Path: "/d", Content: "H4s=", Encoding: "gzip+base64", Permissions: "0644", Owner: "root:root"},
					{Path: "/etc/systemd/system/x.service.d/y.conf", Content: "eg==", Encoding: "base64", Permissions: "0644", Owner: "root:root"},
				},
				RunCmd: [][]string{{"mkdir", "-p", "--", "/b"}, {"ln", "-sfn", "--", "/a", "/b/c"}, {"systemctl", "daemon-reload"}, {"systemctl", "mask", "--now", "x.service"}},
			}, false,
		},
		"owners": {
			"files and directories of users are written when there are users",
			`{"ignition":{"version":"3.4.0"},"storage":{"directories":[{"path":"/srv/../data/","user":{"name":"ops"}},{"path":"/r"}],"files":[{"path":"/a","user":{"name":"ops"}},{"path":"/b","group":{"name":"g"}},{"path":"/c","user":{"name":"root"}}],` +
				`"links":[{"path":"/x//y","target":"t"}]},"passwd":{"users":[{"name":"ops","groups":["g"]}]}}`,
			cloudConfig{
				BootCmd: [][]string{{"install", "-d", "-m", "0755", "-o", "root", "-g", "root", "--", "/r"}},
				WriteFiles: []cloudFile{
					{Path: "/a", Encoding: "base64", Permissions: "0644", Owner: "ops:root", Defer: true}, {Path: "/b", Encoding: "base64", Permissions: "0644", Owner: "root:g", Defer: true},
					{Path: "/c", Encoding: "base64", Permissions: "0644", Owner: "root:root"},
				},
				Users:  []cloudUser{{Name: "ops", Groups: "g"}},
				RunCmd: [][]string{{"install", "-d", "-m", "0755", "-o", "ops", "-g", "root", "--", "/data"}, {"mkdir", "-p", "--", "/x"}, {"ln", "-sfn", "--", "t", "/x/y"}, {"systemctl", "daemon-reload"}},
			}, false,
		},
		"disks":       {"only an installation can partition", `{"ignition":{"version":"2.3.0"},"storage":{"disks":[{}]}}`, cloudConfig{}, true},
		"reference":   {"nothing is fetched", `{"ignition":{"version":"2.3.0","config":{"append":[{}]}}}`, cloudConfig{}, true},
		"remote file": {"nothing is fetched", `{"ignition":{"version":"2.3.0"},"storage":{"files":[{"path":"/a","contents":{"source":"https://example.com"}}]}}`, cloudConfig{}, true},
		"unit path":   {"a unit is a file name", `{"ignition":{"version":"2.3.0"},"systemd":{"units":[{"name":"../../x"}]}}`, cloudConfig{}, true},
		"unit option": {"a unit is no option", `{"ignition":{"version":"2.3.0"},"systemd":{"units":[{"name":"--root=/x"}]}}`, cloudConfig{}, true},
		"relative":    {"paths are absolute", `{"ignition":{"version":"2.3.0"},"storage":{"directories":[{"path":"a"}]}}`, cloudConfig{}, true},
		"version":     {"another format", `{"ignition":{"version":"1.0.0"}}`, cloudConfig{}, true},
		"not JSON":    {"a cloud-config", "#cloud-config\n", cloudConfig{}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			text, err := cloudConfigOf([]byte(tc.text))
			if tc.fails {
				if fault.KindOf(err) != fault.Invalid {
					t.Errorf("%s: %v", tc.reason, err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			var got cloudConfig
			body, ok := strings.CutPrefix(string(text), "#cloud-config\n")
			if err := json.Unmarshal([]byte(body), &got); err != nil || !ok {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: %s", tc.reason, diff)
			}
		})
	}
}
