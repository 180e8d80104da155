from .assessment import LEGAL_DISTANCES as LEGAL_DISTANCES
from .assessment import Assessment as Assessment
from .assessment import assess as assess
from .audit import AuditResult as AuditResult
from .audit import ReportsAudit as ReportsAudit
from .audit import audit_reports as audit_reports
from .claims import valid_reports as valid_reports
from .rules import MEASURES as MEASURES
