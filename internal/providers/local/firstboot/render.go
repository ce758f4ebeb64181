package firstboot

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/netip"
	"path"
	"strings"
	"time"

	"github.com/slipwayhq/slipway/internal/cloudconfig"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/providers/local/backend"
)

// Sentinel is the file that bootstrap data leaves when it has succeeded, by the bootstrap contract.
const Sentinel = "/run/cluster-api/bootstrap-success.complete"

// FormatCloudConfig is the value of the key "format" in the bootstrap secret that can be carried out here; it is also
// what an absent key means.
const FormatCloudConfig = "cloud-config"

// ReasonFormat is the reason of the fault for bootstrap data in another format.
const ReasonFormat = "UnsupportedBootstrapFormat"

// Data is the content of a bootstrap secret.
type Data struct {
	Value []byte
	// Format of Value; empty: cloud-config.
	Format string
}

// Node is the machine that the script is for.
type Node struct {
	// Name of the machine on the host: the instance ID for templates in bootstrap data.
	Name       string
	Hostname   string
	ProviderID string
	Address    netip.Addr
	// Offline machines have no way out of the host: no registry of the internet can be reached.
	Offline bool
}

// Render returns the script. All errors are faults of kind Invalid.
func Render(data Data, node Node, timeout time.Duration) (backend.Script, error) {
	doc, err := parse(data, node)
	if err != nil {
		return backend.Script{}, err
	}
	var b bytes.Buffer
	b.WriteString(prologue)
	for _, what := range doc.Skipped {
		fmt.Fprintf(&b, "say %s\n", quote("left out: "+what))
	}
	if node.Offline {
		b.WriteString(offline)
	}
	kubelet := kubeletSettings(node)
	for i, step := range doc.Steps {
		if step.Section == "runcmd" && kubelet != "" {
			b.WriteString(kubelet)
			kubelet = ""
		}
		renderStep(&b, i, step)
	}
	b.WriteString(kubelet)
	return backend.Script{Body: b.Bytes(), Sentinel: Sentinel, Timeout: timeout}, nil
}

func parse(data Data, node Node) (cloudconfig.Document, error) {
	if data.Format != "" && data.Format != FormatCloudConfig {
		return cloudconfig.Document{}, fault.New(fault.Invalid, ReasonFormat,
			"the bootstrap data has the format %q; the Local provider carries out %q only", data.Format, FormatCloudConfig)
	}
	return cloudconfig.Parse(data.Value, cloudconfig.Metadata{
		InstanceID: node.Name, LocalHostname: node.Hostname,
		Values: map[string]string{"provider_id": node.ProviderID, "local_ipv4": node.Address.String()},
	})
}

// Files returns the files that bootstrap data writes, by their paths. What is appended to a file is left out.
func Files(data Data, node Node) (map[string][]byte, error) {
	doc, err := parse(data, node)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, step := range doc.Steps {
		if step.File != nil && !step.File.Append {
			files[step.File.Path] = step.File.Content
		}
	}
	return files, nil
}

// prologue waits, for a minute at most, until the services of a node image answer; images without them (no init)
// have nothing to wait for. Cloud-init, too, runs the commands at the end of the boot. containerd's socket accepts
// connections before the part that the kubelet talks to has read its state; that part's last words before it answers
// are what serving looks for.
const prologue = `#!/bin/sh
cd /
say() { echo "slipway: $*"; }
await() { tries=0; until "$@" || [ $tries -ge 600 ]; do tries=$((tries+1)); sleep 0.1; done; }
booted() { case "$(systemctl is-system-running 2>/dev/null)" in running|degraded) true;; *) false;; esac; }
serving() { journalctl -q -u containerd -o cat 2>/dev/null | grep -q 'Start streaming server'; }
if [ -x /sbin/init ]; then await booted; await test -S /run/containerd/containerd.sock; await serving; fi
`

// kubeletSettings adds the provider ID and the address to the arguments that the kubelet's unit reads from
// /etc/default/kubelet, after what bootstrap data may have written there. The last value of a flag counts.
func kubeletSettings(n Node) string {
	return fmt.Sprintf(`mkdir -p /etc/default
given=$([ ! -e /etc/default/kubelet ] || . /etc/default/kubelet >/dev/null 2>&1; printf %%s "${KUBELET_EXTRA_ARGS:-}")
printf 'KUBELET_EXTRA_ARGS="%%s --node-ip=%s --provider-id=%s"\n' "$given" >>/etc/default/kubelet
`, n.Address, n.ProviderID)
}

func renderStep(b *bytes.Buffer, i int, s cloudconfig.Step) {
	if s.File != nil {
		renderFile(b, s.File)
		return
	}
	file := fmt.Sprintf("/run/slipway/step-%d.sh", i)
	fmt.Fprintf(b, "say %s\n", quote("running "+s.Section))
	fmt.Fprintf(b, "mkdir -p /run/slipway\n")
	renderContent(b, ">"+file, []byte(s.Script.Text))
	fmt.Fprintf(b, "/bin/sh %[1]s </dev/null || say %[2]s \"$?\"\nrm -f %[1]s\n", file, quote(s.Section+" ended with code"))
}

func renderFile(b *bytes.Buffer, f *cloudconfig.File) {
	operator := ">"
	if f.Append {
		operator = ">>"
	}
	name := quote(f.Path)
	fmt.Fprintf(b, "mkdir -p %s\n", quote(path.Dir(f.Path)))
	renderContent(b, operator+name, f.Content)
	fmt.Fprintf(b, "chown %s %s || say %s\n", quote(f.Owner+":"+f.Group), name, quote("no such owner: "+f.Owner+":"+f.Group))
	fmt.Fprintf(b, "chmod %#o %s\n", f.Mode, name)
}

// renderContent writes content to a file that no one but root can read while it is written.
func renderContent(b *bytes.Buffer, redirect string, content []byte) {
	const width = 76
	fmt.Fprintf(b, "(umask 077; base64 -d %s) <<'.'\n", redirect)
	for text := base64.StdEncoding.EncodeToString(content); text != ""; {
		n := min(width, len(text))
		b.WriteString(text[:n] + "\n")
		text = text[n:]
	}
	b.WriteString(".\n")
}

// quote makes one word of s for a POSIX shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
