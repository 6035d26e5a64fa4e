"""How does a pod come to be? Names, the resources a new pod holds, and their one write."""
