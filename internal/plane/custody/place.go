package custody

import (
	"os"
	"strings"
)

// The ConfigMap in which a management cluster of `slipway up` says where it runs. Tenants cannot write it: it is in a namespace of the
// system.
const (
	PlaceNamespace = "kube-system"
	PlaceName      = "slipway-host"
)

// Place is where a management cluster runs.
type Place struct {
	// Dir is its data directory, Instance the instance of that.
	Dir, Instance string
	// Boot is the ID of the start of the kernel that it runs on: no two hosts have the same.
	Boot string
	// Docker is DOCKER_HOST, as the manager has it.
	Docker string
}

const bootID = "/proc/sys/kernel/random/boot_id"

// Here is the place of a data directory of this host.
func Here(dir, instance string, getenv func(string) string) (Place, error) {
	boot, err := os.ReadFile(bootID)
	return Place{Dir: dir, Instance: instance, Boot: strings.TrimSpace(string(boot)), Docker: getenv("DOCKER_HOST")}, err
}

// Data of the ConfigMap.
func (p Place) Data() map[string]string {
	return map[string]string{"dataDirectory": p.Dir, "instance": p.Instance, "boot": p.Boot, "docker": p.Docker}
}

// PlaceOf reads the data of the ConfigMap; false: it does not say where.
func PlaceOf(data map[string]string) (Place, bool) {
	p := Place{Dir: data["dataDirectory"], Instance: data["instance"], Boot: data["boot"], Docker: data["docker"]}
	return p, p.Dir != "" && p.Instance != "" && p.Boot != ""
}
