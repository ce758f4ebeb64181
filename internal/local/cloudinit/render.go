package cloudinit

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/netip"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/redact"
)

// Sentinel is the file that bootstrap data creates on success, see
// https://cluster-api.sigs.k8s.io/developer/providers/contracts/bootstrap-config. [RenderScript] passes it to the
// backend; package managementnode creates the file in a script of its own.
const Sentinel = "/run/cluster-api/bootstrap-success.complete"

// formatCloudConfig is the only supported value of the key "format" in the bootstrap Secret, and the meaning of an
// absent key.
const formatCloudConfig = "cloud-config"

// reasonFormat is the reason of the fault for bootstrap data in an unsupported format.
const reasonFormat = "UnsupportedBootstrapFormat"

// BootstrapData is the content of a bootstrap Secret. The controllers of LocalMachines and SSHMachines read it from the
// Secret.
type BootstrapData struct {
	Value []byte
	// Format of Value; empty: cloud-config.
	Format string
}

// NodeSettings describes the machine that runs the script. The controllers of LocalMachines and SSHMachines and package
// managementnode fill it in.
type NodeSettings struct {
	// Name of the machine on the host: the instance ID for templates in bootstrap data.
	Name       string
	Hostname   string
	ProviderID string
	Address    netip.Addr
	// Offline machines have no internet access and reach no public registry.
	Offline bool
}

// RenderScript returns the script that runs the bootstrap data in a machine. The LocalMachine controller calls it for
// each machine that is scripted, package managementnode for the management node, and package ssh/remote for hosts. All
// errors are faults of kind Invalid.
func RenderScript(data BootstrapData, node NodeSettings, timeout time.Duration) (backend.Script, error) {
	doc, err := parseBootstrapData(data, node)
	if err != nil {
		return backend.Script{}, err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, prologue, int(timeout.Seconds())/2, backend.StageFile, backend.FailedFile, path.Dir(backend.StageFile), backend.StageBoot, backend.StageContainerd)
	for _, what := range doc.Skipped {
		fmt.Fprintf(&b, "say %s\n", quote("skipped: "+what))
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

func parseBootstrapData(data BootstrapData, node NodeSettings) (document, error) {
	if data.Format != "" && data.Format != formatCloudConfig {
		return document{}, fault.New(fault.Invalid, reasonFormat,
			"the bootstrap data has the format %q, but only %q is supported", data.Format, formatCloudConfig)
	}
	return parse(data.Value, node.metadata())
}

// metadata returns the values for templates.
func (n NodeSettings) metadata() metadata {
	return metadata{
		InstanceID: n.Name, LocalHostname: n.Hostname,
		Values: map[string]string{"provider_id": n.ProviderID, "local_ipv4": n.Address.String()},
	}
}

// SkippedParts returns the parts of the bootstrap data that this provider does not apply. The LocalMachine controller
// reports them in a condition when the data has run.
func SkippedParts(data BootstrapData, node NodeSettings) ([]string, error) {
	doc, err := parseBootstrapData(data, node)
	return doc.Skipped, err
}

// WrittenFiles returns the files that the bootstrap data writes, by path. Content that is appended to a file is
// omitted. The simulated backend creates a control plane from them.
func WrittenFiles(data BootstrapData, node NodeSettings) (map[string][]byte, error) {
	doc, err := parseBootstrapData(data, node)
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

// prologue waits until the services of the node image respond. Images without /sbin/init have no services to wait for.
// The wait has a long limit, because a busy host needs minutes for the boot. The stage file contains the current stage.
// The wait for systemd is limited to half of the timeout, because a single unit that never starts need not prevent the
// machine from becoming a node.
//
// The commands run at the end of the boot, as with cloud-init. The containerd socket accepts connections before the CRI
// plugin, which the kubelet uses, has loaded its state. The function serving therefore requests the status with crictl,
// or checks containerd's journal, if there is one, for the last message before the plugin responds. This wait ends five
// minutes after containerd has started, because a host that runs for long may have lost the message.
const prologue = `#!/bin/sh
cd /
say() { echo "slipway: $*"; }
stage() { { echo "$*" >%[2]s; } 2>/dev/null; }
failed() { { echo "$*" >>%[3]s; } 2>/dev/null; }
booted() { case "$(systemctl is-system-running 2>/dev/null)" in running|degraded) true;; *) false;; esac; }
logged() { [ -n "$(journalctl -q -u containerd -o cat -n 1 2>/dev/null)" ]; }
settled() { at=$(systemctl show -p ActiveEnterTimestampMonotonic --value containerd 2>/dev/null); [ "${at:-0}" -gt 0 ] 2>/dev/null && [ $(($(cut -d . -f 1 /proc/uptime) - at / 1000000)) -ge 300 ]; }
serving() {
if settled; then return 0; fi
if command -v crictl >/dev/null 2>&1; then timeout 5 crictl --runtime-endpoint unix:///run/containerd/containerd.sock info >/dev/null 2>&1; return; fi
! logged || journalctl -q -u containerd -o cat 2>/dev/null | grep -q 'Start streaming server'
}
mkdir -p %[4]s
if [ -x /sbin/init ]; then
stage %[5]s
until=$(($(date +%%s) + %[1]d))
until booted || [ "$(date +%%s)" -ge $until ]; do sleep 0.1; done
booted || say "systemd did not finish booting within %[1]d seconds; the bootstrap data runs without it"
stage %[6]s
if systemctl cat containerd.service >/dev/null 2>&1; then until [ -S /run/containerd/containerd.sock ] && serving; do sleep 0.1; done; fi
fi
`

// pullHint is the mirror that containerd of a node without internet access tries first for an image. Nothing listens on
// this address, so the attempt fails at once, and the error of the Pod ends with the address. If a registry in the
// cluster's network can be reached, its own error is reported instead.
const pullHint = "http://127.0.0.1:1/this-node-has-no-internet/use-slipway-image-load"

// offline adds the hint to errors of image pulls. Files of the bootstrap data are written later: their default for all
// registries replaces the hint, and their settings for a single registry take precedence. A default in the node image
// is left unchanged. Nothing is written to a directory that is mounted into the machine.
const offline = `hint() {
	at=/etc/containerd/certs.d
	[ -d /etc/containerd/ ] && [ ! -e $at/_default ] || return 0
	for folder in /etc/containerd/ $at; do
		[ ! -e $folder ] || [ "$(stat -Lc %d $folder)" = "$(stat -Lc %d /etc/)" ] || return 0
	done
	mkdir -p $at/_default
	cat >$at/_default/hosts.toml <<-'END'
		[host."` + pullHint + `"]
		  capabilities = ["pull", "resolve"]
		  override_path = true
	END
}
hint
`

// kubeletSettings adds the provider ID and the address to the flags that the kubelet's unit reads from
// /etc/default/kubelet, after flags from the bootstrap data. The last value of a flag takes effect. The kubelet's package for
// RHEL and its relatives has /etc/sysconfig/kubelet instead:
// https://kubernetes.io/docs/setup/production-environment/tools/kubeadm/kubelet-integration/#the-kubelet-drop-in-file-for-systemd
func kubeletSettings(n NodeSettings) string {
	return fmt.Sprintf(`mkdir -p /etc/default
for file in /etc/default/kubelet /etc/sysconfig/kubelet; do
[ -e $file ] || [ $file = /etc/default/kubelet ] || continue
given=$([ ! -e $file ] || . $file >/dev/null 2>&1; printf %%s "${KUBELET_EXTRA_ARGS:-}")
printf 'KUBELET_EXTRA_ARGS="%%s --node-ip=%s --provider-id=%s"\n' "$given" >>$file
done
`, n.Address, n.ProviderID)
}

func renderStep(b *bytes.Buffer, i int, s step) {
	if s.File != nil {
		renderFile(b, s.File)
		return
	}
	file := fmt.Sprintf("%s/step-%d.sh", path.Dir(backend.StageFile), i)
	fmt.Fprintf(b, "say %[1]s\nstage step %[2]s - -\n", quote("running "+s.Section), s.Section)
	renderContent(b, ">"+file, []byte(traced(s)))
	// The stage file names the command that ended the script. The exit code of the last command is recorded by the
	// script itself.
	fmt.Fprintf(b, `/bin/sh %[1]s </dev/null || { code=$?; say %[2]s "$code"; { read -r _ at <%[3]s; } 2>/dev/null; [ "$at" = %[4]s ] || failed "$at $code"; }
rm -f %[1]s
`, file, quote(s.Section+" ended with code"), backend.StageFile, quote(s.Section+" "+endMarker))
}

// endMarker replaces index and program once all commands of a section have run. Package container recognizes it
// (bootstrapstatus.go), so both must agree.
const endMarker = "- end"

// traced returns a script that records the running command and the failed commands. The next command still sees the
// exit code of the previous one. The container backend parses the recorded lines (container/bootstrapstatus.go), and
// package ssh/remote reads the stage file, so their form must not change.
func traced(s step) string {
	if len(s.Script.Commands) == 0 {
		return s.Script.Text
	}
	var b strings.Builder
	fmt.Fprintf(&b, `slipway_at() {
slipway_code=$?
[ -z "$slipway_in" ] || [ "$slipway_code" = 0 ] || { echo "$slipway_in $slipway_code" >>%[2]s; } 2>/dev/null
slipway_in="%[3]s $1 $2"
{ echo "step $slipway_in" >%[1]s; } 2>/dev/null
return "$slipway_code"
}
slipway_in=
`, backend.StageFile, backend.FailedFile, s.Section)
	b.WriteString(s.Script.Prologue)
	for i, command := range s.Script.Commands {
		if command == "" {
			continue
		}
		fmt.Fprintf(&b, "slipway_at %d %s\n%s\n", i, programOf(command), command)
	}
	b.WriteString("slipway_at " + endMarker + "\n")
	return b.String()
}

// program matches the name of a program. Words that could be secrets are excluded separately.
var program = regexp.MustCompile(`^[A-Za-z0-9_.+-]{1,32}$`)

// programOf returns the name of the program that a command runs, without its directory and leading variable
// assignments, or "-" if it cannot be determined.
func programOf(command string) string {
	for _, word := range strings.Fields(command) {
		word = strings.Trim(word, `'"`)
		if strings.Contains(word, "=") || word == "sudo" || word == "env" {
			continue
		}
		if name := path.Base(word); program.MatchString(name) && len(redact.FindOpaqueWords(name)) == 0 {
			return name
		}
		break
	}
	return "-"
}

func renderFile(b *bytes.Buffer, f *file) {
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

// renderContent writes content to a file with umask 077, so that only root can read it at first.
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
