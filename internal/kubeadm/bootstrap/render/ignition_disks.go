package render

import (
	"strconv"
	"strings"

	"github.com/coreos/go-systemd/v22/unit"
	"github.com/flatcar/ignition/config/v2_3/types"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
)

// addDisks adds the partitions and file systems of spec.diskSetup to an Ignition configuration. Values that Ignition
// 2.3 cannot express are Invalid faults. [ignitionConfig] calls it, and then addMounts.
func addDisks(config *types.Config, p Payload) error {
	for _, d := range p.DiskSetup.Partitions {
		partitions, err := partitionsOf(d)
		if err != nil {
			return err
		}
		config.Storage.Disks = append(config.Storage.Disks, types.Disk{
			Device: d.Device, Partitions: partitions, WipeTable: d.Overwrite != nil && *d.Overwrite,
		})
	}
	for i, f := range p.DiskSetup.Filesystems {
		if f.ReplaceFS != "" || f.Partition != "" {
			return ignitionInvalid("replaceFS and partition of the file system on %s are not supported with the format ignition; leave them out", f.Device)
		}
		mount := &types.Mount{Device: f.Device, Format: f.Filesystem, WipeFilesystem: f.Overwrite != nil && *f.Overwrite}
		name := "filesystem-" + strconv.Itoa(i)
		if f.Label != "" {
			mount.Label, name = &f.Label, f.Label
		}
		for _, option := range f.ExtraOpts {
			mount.Options = append(mount.Options, types.MountOption(option))
		}
		config.Storage.Filesystems = append(config.Storage.Filesystems, types.Filesystem{Name: name, Mount: mount})
	}
	return nil
}

// partitionsOf returns no partition or one for the whole disk. Ignition does not know the size of the disk, so
// percentages are not supported.
func partitionsOf(d bootstrapv1.Partition) ([]types.Partition, error) {
	if d.TableType != "" && d.TableType != "gpt" {
		return nil, ignitionInvalid("the partition table %s of %s is not supported with the format ignition; use gpt", d.TableType, d.Device)
	}
	whole := types.Partition{Number: 1}
	switch {
	case len(d.DiskLayout) == 0:
		if d.Layout == nil || !*d.Layout {
			return nil, nil
		}
		return []types.Partition{whole}, nil
	case len(d.DiskLayout) > 1 || d.DiskLayout[0].Percentage != 100:
		return nil, ignitionInvalid("percentages in diskLayout of %s are not supported with the format ignition; "+
			"describe the disk in spec.ignition.containerLinuxConfig.additionalConfig", d.Device)
	}
	guid, known := typeGUID(d.DiskLayout[0].PartitionType)
	if !known {
		return nil, ignitionInvalid("the partition type %s of %s does not exist in a gpt; use another", d.DiskLayout[0].PartitionType, d.Device)
	}
	whole.TypeGUID = guid
	return []types.Partition{whole}, nil
}

// typeGUID returns the GUID of a partition type for GPT. GUIDs are returned unchanged.
func typeGUID(name string) (guid string, known bool) {
	guids := map[string]string{
		bootstrapv1.PartitionTypeLinux:         "0FC63DAF-8483-4772-8E79-3D69D8477DE4",
		bootstrapv1.PartitionTypeLinuxSwap:     "0657FD6D-A4AB-43C4-84E5-0933C84B4F4F",
		bootstrapv1.PartitionTypeLinuxRAID:     "A19D880F-05FC-4D3B-A006-743F0F84911E",
		bootstrapv1.PartitionTypeLVM:           "E6D6D379-F507-44C2-A23C-238F2A3DF928",
		bootstrapv1.PartitionTypeFat32:         "EBD0A0A2-B9E5-4433-87C0-68B6B72699C7",
		bootstrapv1.PartitionTypeNTFS:          "EBD0A0A2-B9E5-4433-87C0-68B6B72699C7",
		bootstrapv1.PartitionTypeLinuxExtended: "",
	}
	if guid, ok := guids[name]; ok {
		return guid, guid != ""
	}
	return name, true
}

// addMounts adds a unit for each mount. As in /etc/fstab, a mount consists of a device, path, type and options.
// [ignitionConfig] calls it.
func addMounts(config *types.Config, p Payload) error {
	for _, m := range p.Mounts {
		if len(m) < 2 || !strings.HasPrefix(m[1], "/") || strings.ContainsAny(strings.Join(m, ""), "\r\n") {
			return ignitionInvalid("a mount with the format ignition needs a device and an absolute path, has %q", strings.Join(m, " "))
		}
		text := "[Unit]\nDescription=Mounts " + literal(m[1]) + "\nBefore=local-fs.target\n\n[Mount]\nWhat=" + literal(sourceOf(m[0])) +
			"\nWhere=" + literal(m[1]) + "\n"
		for i, name := range []string{"Type", "Options"} {
			if len(m) > i+2 && m[i+2] != "" && m[i+2] != "auto" {
				text += name + "=" + literal(m[i+2]) + "\n"
			}
		}
		config.Systemd.Units = append(config.Systemd.Units, types.Unit{
			Name: unit.UnitNamePathEscape(m[1]) + ".mount", Enabled: new(true),
			Contents: text + "\n[Install]\nRequiredBy=local-fs.target\n",
		})
	}
	return nil
}

// literal escapes percent signs, which start specifiers in units.
func literal(value string) string { return strings.ReplaceAll(value, "%", "%%") }

// sourceOf converts a label or UUID to a device path, because units do not support them.
func sourceOf(what string) string {
	for prefix, dir := range map[string]string{
		"LABEL=": "/dev/disk/by-label/", "UUID=": "/dev/disk/by-uuid/", "PARTLABEL=": "/dev/disk/by-partlabel/", "PARTUUID=": "/dev/disk/by-partuuid/",
	} {
		if name, ok := strings.CutPrefix(what, prefix); ok {
			return dir + name
		}
	}
	return what
}
