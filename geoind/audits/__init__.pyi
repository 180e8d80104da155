from .audit import AuditResult as AuditResult
from .reports import ReportsAudit as ReportsAudit
from .reports import audit_reports as audit_reports
