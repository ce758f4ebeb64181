# Reboots the host after this script has ended.
sync
systemd-run --quiet --on-active=1 --timer-property=AccuracySec=100ms systemctl reboot || systemctl --no-block reboot
