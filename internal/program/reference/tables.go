package reference

// tables are all generated parts of the pages.
func tables() []table {
	list := []table{
		{"configuration.md", "keys", configurationKeys},
		{"metrics.md", "worker", workerMetrics},
		{"metrics.md", "webhooks", webhookMetrics},
		{"cli.md", "shared flags", sharedFlags},
		{"cli.md", "commands", allCommands},
	}
	root, err := tree()
	if err != nil {
		return append(list, table{"cli.md", "commands of all", func() (string, error) { return "", err }})
	}
	for _, c := range root.children {
		list = append(list, table{"cli.md", c.name(), func() (string, error) { return commandTable(c) }})
	}
	return list
}
