"""What moto lacks of AWS, one noun a file: operations added, and refusals that AWS gives with its own error codes."""
