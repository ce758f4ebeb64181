package cloudinit

import (
	"slices"
	"strings"

	"k8s.io/utils/ptr"
)

// timesyncdConfig is a drop-in file for additional servers of systemd-timesyncd.
const timesyncdConfig = "/etc/systemd/timesyncd.conf.d/cloud-init.conf"

// ntpSection is the section ntp; its other fields are ignored.
type ntpSection struct {
	Enabled *bool    `yaml:"enabled"`
	Servers []string `yaml:"servers"`
	Pools   []string `yaml:"pools"`
}

// readNTP writes the servers to the configuration of systemd-timesyncd. It does not change the service, because a
// container uses the clock of its host. assemble calls it for [parse].
func readNTP(s section) ([]step, []string, error) {
	var ntp ntpSection
	if err := s.value.Decode(&ntp); err != nil {
		return nil, nil, invalidFault("ntp cannot be read").From(err)
	}
	servers := slices.Concat(ntp.Pools, ntp.Servers)
	if len(servers) == 0 || !ptr.Deref(ntp.Enabled, true) {
		return nil, nil, nil
	}
	return []step{{Section: s.name, File: &file{
		Path: timesyncdConfig, Content: []byte("[Time]\nNTP=" + strings.Join(servers, " ") + "\n"),
		Owner: "root", Group: "root", Mode: defaultMode,
	}}}, nil, nil
}
