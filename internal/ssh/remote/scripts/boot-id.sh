boot_id
